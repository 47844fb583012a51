# Every target makes the environment it needs; nothing has to be installed first but Python 3.11 or later and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo demo-federation bench-federation vendor wheels paper accuracy browser test test-federation test-container test-slow test-lowest kernels lint format bench bench-quick docs clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/demo.stamp  ## Learn from five silos by seven methods, compare and draw; writes demo/
	$(BIN)/python examples/silos.py demo

demo-federation: $(VENV)/nvflare.stamp  ## Run a federation of three sites on this machine, every command shown; writes federation-demo/
	$(BIN)/silograph federation demo --force

paper: $(VENV)/paper.stamp  ## Check the paper: every table and figure at full size, in ten minutes; writes docs/paper/, or without SILOGRAPH_DATA what can be done to paper/
	$(BIN)/silograph reproduce all --out $(if $(SILOGRAPH_DATA),docs/paper,paper)

accuracy: $(VENV)/accuracy.stamp  ## How good the default is, against known truth and beside other people's methods; writes docs/accuracy.md
	$(BIN)/silograph reproduce accuracy --out docs

# More workers than cores, as some of them wait for a disk or for another process
WORKERS ?= 3

test: $(VENV)/lint.stamp $(VENV)/test.stamp  ## Run all checks within six minutes: style, types, layers, tests, examples in the docs
	$(MAKE) --jobs=2 lint kernels
	$(BIN)/python -m pytest --numprocesses $(WORKERS)

test-federation: $(VENV)/test.stamp  ## Run the tests on federations of real processes, one after the other
	$(BIN)/python -m pytest -m federation

test-container: $(VENV)/test.stamp wheels  ## Install from wheels/ as containers/Containerfile says, in a bare Debian, and start a site there (as root; needs debootstrap)
	$(BIN)/python -m pytest -m container

kernels: $(VENV)/test.stamp  ## Compile the loops that most tests need
	$(BIN)/python -m testing.kernels

browser: $(VENV)/test.stamp  ## Install a browser for the tests of the report, where apt-get can (Debian, Ubuntu; as root)
	command -v chromium >/dev/null || (apt-get update -q && apt-get install -q -y --no-install-recommends chromium)

test-slow: $(VENV)/test.stamp  ## Run the checks that take minutes: the whole stress set, large problems
	$(BIN)/python -m pytest -m slow

test-lowest:  ## Run the tests with the lowest dependency versions that pyproject.toml allows
	$(PYTHON) -m venv --clear .venv-lowest
	$(PYTHON) tools/lowest.py pyproject.toml > .venv-lowest/constraints.txt
	.venv-lowest/bin/pip install --quiet --constraint .venv-lowest/constraints.txt --editable '.[test]'
	.venv-lowest/bin/python -m testing.kernels
	.venv-lowest/bin/python -m pytest --numprocesses $(WORKERS) -W default tests src docs README.md  # old releases warn of each other

lint: $(VENV)/lint.stamp  ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/lint.stamp  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/bench.stamp  ## Time and memory against other solvers, and how they grow, in 40 minutes; goes on if it was stopped; writes benchmarks/results/ and docs/
	$(BIN)/python -m benchmarks.run

bench-quick: $(VENV)/bench.stamp  ## The same on small problems, in two minutes
	$(BIN)/python -m benchmarks.run --quick

bench-federation: $(VENV)/test.stamp  ## What a round, idleness and more sites cost, what survives which fault, and an hour of soaking, in five hours; goes on if it was stopped
	$(BIN)/python -m benchmarks.federation.overhead
	$(BIN)/python -m benchmarks.federation.idle
	$(BIN)/python -m benchmarks.federation.patients
	$(BIN)/python -m benchmarks.federation.sites
	$(BIN)/python -m benchmarks.federation.faults
	$(BIN)/python -m benchmarks.federation.soak

vendor: $(VENV)/report.stamp  ## Bring the libraries inside the report's page up to date (needs npm)
	$(BIN)/python tools/vendor.py

wheels: $(VENV)/nvflare.stamp  ## Fill wheels/ with all that a federation or a site needs, to install without a network (220 MB)
	rm -rf wheels
	$(BIN)/python -m pip wheel --quiet --wheel-dir wheels '.[nvflare]'
	cp containers/Containerfile wheels/
	cd wheels && sha256sum *.whl Containerfile > SHA256SUMS
	@echo "At the site: python3 -m venv silograph && silograph/bin/pip install --no-index --find-links wheels 'silograph[nvflare]'"

docs: $(VENV)/docs.stamp  ## Write the page of commands anew, and build the documentation into site/
	$(BIN)/python tools/cli_reference.py
	$(BIN)/mkdocs build --strict

clean:  ## Remove the environments and everything that was made
	find src benchmarks testing tests -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .venv .venv-lowest site demo federation-demo wheels build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@
