import sys
from benchmarks.tasks import chain
from benchmarks.measure import table
rows = chain(sys.argv[1], int(sys.argv[2]), {"AIRFLOW__ADK_AIRFLOW__PRELOAD": sys.argv[3]})
print(table(rows)); print([ [round(x,3) for x in r.ours] for r in rows],[ [round(x,3) for x in r.theirs] for r in rows])
