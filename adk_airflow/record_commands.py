"""What ``adk-airflow clean-records`` does."""

from __future__ import annotations

import sys


def clean_records(*, older_than: float | None, dry_run: bool) -> int:
    """Removes the records of tasks that were last written to some days ago or earlier, and says which.

    Args:
        older_than: How many days; None for ``[adk_airflow] keep_records_days``.
        dry_run: Removes nothing.

    Returns:
        The exit code: 0, or 1 where one could not be removed or the settings are wrong.
    """
    from adk_airflow.errors import ServiceConfigurationError
    from adk_airflow.runtime.services import settings, transcripts

    try:
        days = settings.keep_records_days() if older_than is None else older_than
        if older_than is None and not days:
            print("adk-airflow: records are kept for ever: give --older-than, or set [adk_airflow] keep_records_days")
            return 0
        root = settings.transcripts_place()
    except ServiceConfigurationError as error:
        print(f"adk-airflow: {error}", file=sys.stderr)
        return 1
    done, failed = 0, 0
    for record in transcripts.older_than(root, days):
        header = record.header
        index = header.get("map_index", -1)
        task = f"{header.get('task_id')}{f'[{index}]' if isinstance(index, int) and index >= 0 else ''}"
        what = f"{header.get('dag_id')} {header.get('run_id')} {task} try {header.get('try')}: {record.last:%Y-%m-%d %H:%M} UTC"
        try:
            if not dry_run:
                transcripts.remove(root, record)
        except Exception as error:  # of any store
            failed += 1
            print(f"not removed: {what}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        done += 1
        print(f"{'would remove' if dry_run else 'removed'} {what}")
    print(f"{done} record{'' if done == 1 else 's'} {'would be' if dry_run else ''} removed".replace("  ", " "))
    return 1 if failed else 0
