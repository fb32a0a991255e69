# Everything starts here: `make demo` from a fresh clone needs a Python 3.11 to 3.13 and make, nothing else.
# PYTHON=... names the Python for the virtual environment.

PYTHON ?= python3
export PYTHON
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
HOME_OF_DEMO := .demo
PROJECTS := pyproject.toml $(wildcard providers/*/pyproject.toml) constraints.txt
ADK_AIRFLOW := $(BIN)/adk-airflow

.PHONY: help demo up down test fuzz test-faults bench lint screenshots clean

help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-12s %s\n", $$1, $$2}' Makefile

demo: .venv/.installed ## run the batch retrieval workflow on an Airflow of its own, show its report, end the Airflow
	@$(ADK_AIRFLOW) demo --home $(HOME_OF_DEMO) --dags dags $(ARGS)

up: .venv/.installed ## start that Airflow and leave it running
	@$(ADK_AIRFLOW) up --home $(HOME_OF_DEMO) --dags dags $(ARGS)

down: ## end it
	@if [ -x $(ADK_AIRFLOW) ]; then $(ADK_AIRFLOW) down --home $(HOME_OF_DEMO); fi

test: .venv/.installed .tools/.installed ## run the whole test suite in two processes; ARGS="-k name" for a part, ARGS="-n 0" in one
	@$(BIN)/python -m pytest -n 2 $(ARGS)

fuzz: .venv/.installed ## run N random workflows three ways and compare: make fuzz N=2000 SEED=1
	@$(BIN)/python -m tests.fuzz --count $(or $(N),200) --seed $(or $(SEED),1) $(ARGS)

test-faults: .venv/.installed ## kill and break a real Airflow, on SQLite and PostgreSQL, and print what runs cost; ARGS="--only kills"
	@scripts/install-postgres-driver && $(BIN)/python -m tests.faults $(ARGS)

bench: .venv/.installed ## measure what it costs beside plain Airflow and plain ADK; ARGS="--only plans parse runs local celery"
	@$(BIN)/python -m benchmarks $(ARGS)

lint: .venv/.installed-dev ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

screenshots: .venv/.installed ## take the pictures of docs/ from a running demo, with headless Chromium
	@scripts/screenshots $(ARGS)

clean: down ## end it, and remove the virtual environment, the demo's data and all caches
	rm -rf .venv .tools $(HOME_OF_DEMO) build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The MCP Toolbox server that tests start; needs npm. Without it the tests that need the server say so and fail.
.tools/.installed: scripts/install-toolbox-server
	@if scripts/install-toolbox-server; then touch $@; fi

# The stamps are written last: an installation that was interrupted is done again.
.venv/.installed: $(PROJECTS)
	@scripts/install
	@touch $@

.venv/.installed-dev: $(PROJECTS)
	@scripts/install dev
	@touch $@ .venv/.installed
