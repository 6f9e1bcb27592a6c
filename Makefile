# The first two targets are all a newcomer needs. VENV and PYTHON can be given: make test VENV=/tmp/venv PYTHON=python3.12
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
RUN = $(BIN)/python

.PHONY: demo test test-long lint docs performance check-system clean

demo: $(VENV)/.demo
	rm -rf demo-out
	$(BIN)/smpc demo --out demo-out

test: $(VENV)/.dev
	$(RUN) -m pytest -q -n auto -m "not mpc and not long" --durations=5
	$(RUN) -m pytest -q -m "mpc and not long" --durations=5

test-long: $(VENV)/.dev
	$(RUN) -m pytest -q -m long --durations=20
	$(RUN) -m pytest -q --nbmake --nbmake-timeout=300 docs/notebooks

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

performance: $(VENV)/.dev
	$(RUN) -m tests.bench.performance

check-system:
	@sh ./check-system.sh $(PYTHON)

$(VENV)/bin/pip: | check-system
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

# Both are editable: what runs is the tree as it stands, however it changed since.
$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/pip
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) demo-out build dist *.egg-info
