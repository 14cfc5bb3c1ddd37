# `make test` and `make demo` need Python 3.11 or newer and nothing else: they set up .venv themselves.

.PHONY: help setup quick test slurm nightly demo lowest lint docs wheel bench validate lock changelog release-check clean
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1|\2/p' Makefile | while IFS='|' read -r name what; do printf 'make %-14s %s\n' "$$name" "$$what"; done

setup: ## make the virtual environment .venv
	@bash tools/setup.sh

quick: setup ## run the tests that take a minute, with the compiled engine from the cache
	@bash tools/test.sh quick $(ARGS)

test: setup ## run the whole test suite; ARGS="-k easy" passes arguments to pytest
	@bash tools/test.sh default $(ARGS)

slurm: setup ## run the tests that start a real Slurm on this machine, if its programs are installed
	@bash tools/test.sh slurm $(ARGS)

nightly: setup ## run the whole test suite with twenty times as many examples, chosen at random, and indices checked
	@bash tools/test.sh nightly $(ARGS)

demo: setup ## replay a small generated workload under three policies and write report.html
	@.venv/bin/walltime demo $(ARGS)

lowest: setup ## run some tests with the lowest versions that pyproject.toml allows
	@bash tools/lowest.sh

lint: setup ## ruff, mypy, the rules on imports, budgets of lines, prose, generated pages
	@bash tools/lint.sh

docs: setup ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict

wheel: setup ## build the source distribution and the wheel, and try the wheel out without the source
	@bash tools/wheel.sh

bench: setup ## measure speed and memory
	@.venv/bin/python benchmarks/run.py $(ARGS)

validate: setup ## compare the engine with theory and identities, and interpretations with each other
	@.venv/bin/python validation/run.py $(ARGS)

lock: setup ## resolve the dependencies again, into requirements.lock
	@bash tools/lock.sh

changelog: setup ## show what changelog.d/ adds to the next release
	@.venv/bin/towncrier build --draft

release-check: setup ## check versions, recipe, images, extras, and the wheel on each installed Python before a release
	@.venv/bin/python tools/release.py

clean: ## remove everything that these targets made, also .venv
	@rm -rf .venv site report.html dist screenshots .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache .coverage
	@find src tests docs benchmarks validation -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
