# Every target first sets up what it needs in .venv, pinned, where it is not there yet: scripts/bootstrap.py.
# Where a ROS 2 is sourced its rclpy, NumPy and SciPy are used; elsewhere rclpy comes as wheels.

PYTHON ?= python3
ARGS ?=

bin := .venv/bin
bootstrap := $(PYTHON) scripts/bootstrap.py

# As plain Python kernels are a hundred times slower, so tests of anything else are left out.
coverage_skips := project formulations nodes simulation/test_sensor% simulation/test_fault% simulation/test_rig% \
    simulation/test_command% simulation/test_watch% simulation/test_snap% model/parameters/test_fault% \
    model/parameters/test_sensor% control/laws/test_valve% kernels/test_valve% kernels/test_oracle% tools/test_rig%
coverage_tests := $(filter-out $(foreach skip,$(coverage_skips),test/$(skip) test/$(skip)/%), \
    $(sort $(shell find test -name 'test_*.py')))

.DEFAULT_GOAL := help
.PHONY: help demo docs test test-all test-long test-oldest coverage bench calibration campaign \
    mutation pictures lint clean distclean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo:  ## run the main job: a machine simulated and controlled by two processes (MACHINE=five_bar or file, ARGS=...)
	@$(bootstrap) run
	@$(bin)/psdyn demo $(if $(MACHINE),--machine $(MACHINE)) $(ARGS)

test:  ## run the tests; every feature is proven once (ARGS="-k name" and other options of pytest)
	@$(bootstrap) dev
	@$(bin)/python scripts/run_tests.py $(ARGS)

test-all:  ## run all tests: also those on more machines and states, of minutes each, and more random examples
	@$(bootstrap) dev
	@$(bin)/python scripts/run_tests.py --all $(ARGS)

test-long:  ## run the tests that `make test` leaves out, and no others
	@$(bootstrap) dev
	@$(bin)/python scripts/run_tests.py --long $(ARGS)

test-oldest:  ## run the tests on the oldest supported versions, in .venv-oldest
	@$(bootstrap) oldest
	@.venv-oldest/bin/python scripts/run_tests.py $(ARGS)

coverage:  ## line and branch coverage of kernels and API, which run as plain Python for it
	@$(bootstrap) dev
	@NUMBA_DISABLE_JIT=1 $(bin)/python -m coverage run -m pytest -m "not (slow or long or jit or dds)" \
	    $(coverage_tests) $(ARGS)
	@$(bin)/python -m coverage report

bench:  ## compare our dynamics with Pinocchio and MuJoCo
	@$(bootstrap) dev
	@$(bin)/python -m bench $(ARGS)

campaign:  ## every fault in every state, killed and stopped controllers: docs/reference/fault_report.md (some hours; ARGS="--short")
	@$(bootstrap) dev
	@$(bin)/python -m psdyn_ros.tools.fault_campaign.campaign $(ARGS)

calibration:  ## how far validate, compare and identify can be trusted: docs/reference/calibration.md (an hour or more; ARGS="--short")
	@$(bootstrap) dev
	@$(bin)/python -m psdyn_ros.tools.studies.calibration_study $(ARGS)

mutation:  ## mutants of the safety states, the output gate and the ramp, which the tests must notice (10 min)
	@$(bootstrap) dev
	@$(bin)/python scripts/mutation.py $(ARGS)

docs:  ## the pages as a site: build/site/index.html
	@$(bootstrap) dev
	@NO_MKDOCS_2_WARNING=1 $(bin)/mkdocs build --strict --quiet

pictures:  ## draw the pictures of README and docs: machines, and the viewer by Chromium (apt install chromium)
	@$(bootstrap) dev
	@$(bin)/python scripts/draw_machines.py
	@rm -rf build/pictures
	@$(bin)/psdyn demo --output build/pictures
	@$(bin)/python scripts/draw_view.py build/pictures

lint:  ## check style, common mistakes, and the types of what users call
	@$(bootstrap) dev
	@$(bin)/ruff check .
	@$(bin)/mypy

clean:  ## remove what builds, tests and tools leave behind
	rm -rf build install log *.egg-info .pytest_cache .ruff_cache .hypothesis .coverage*
	find psdyn_ros test bench scripts launch -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean  ## clean, and remove the environments
	rm -rf .venv .venv-oldest .bootstrap.lock
