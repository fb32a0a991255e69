def celery_worker(*a): raise NotImplementedError
