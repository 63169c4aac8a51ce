# The short way in; every target is one script. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help run build deb test check sim-long bench bench-memory format clang-tidy sanitize fuzz clean clean-run

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

run: ## build, start the service, create one machine twice and see that it is one (VMONCE_PORT=8080)
	@packaging/setup run
	@packaging/build vmonce
	@packaging/guest/build .run/guest
	@packaging/demo

build: ## build everything into build/
	@packaging/setup run
	@packaging/build

deb: ## build the Debian package into build/
	@packaging/setup run
	@packaging/build vmonce
	@packaging/deb

test: ## install what the tests need, build, run every check and every test
	@packaging/setup test
	@tests/run all

check: ## the developer's loop: format, style, warnings, unit tests
	@packaging/setup test
	@tests/run check

bench: ## measure this machine and the service on it, as ratios (about three minutes; docs/performance.md)
	@packaging/setup run
	@packaging/build vmonce vmonce_bench
	@packaging/guest/build build/guest
	@VMONCE_GUEST_DIR=$(CURDIR)/build/guest bench/run

bench-memory: ## memory and speed over a million stored operations (some minutes, 4 GiB of disk)
	@packaging/setup run
	@packaging/build vmonce vmonce_bench
	@bench/run memory

sim-long: ## a million made-up worlds, every rare place reached, every broken rule seen (hours; docs/simulation.md)
	@packaging/setup run
	@packaging/build vmonce
	@build/vmonce sim --seeds 1..1000000 --must-reach-all
	@sim/mutants

format: ## let clang-format rewrite the sources
	@packaging/setup test
	@tools/format

clang-tidy: ## run clang-tidy on the files that differ from main (minutes)
	@packaging/setup test
	@tools/clang_tidy

sanitize: ## unit and contract tests under a sanitizer (make sanitize KIND=asan|tsan NAME=http; many minutes)
	@packaging/setup test
	@packaging/guest/build build/guest
	@tests/sanitize $(or $(KIND),asan) build
	@VMONCE_GUEST_DIR=$(CURDIR)/build/guest tests/sanitize $(or $(KIND),asan) test $(NAME)

fuzz: ## fuzz the parsers (make fuzz TARGET=json MINUTES=30; without a target all, two at a time)
	@packaging/setup test
	@tests/sanitize asan build vmonce_fuzz
	@tests/fuzz/run $$(( $(or $(MINUTES),1) * 60 )) $(TARGET)

clean: ## remove what was built; machines of `make run` and their state stay in .run/
	@rm -rf build build-*

clean-run: ## stop the machines of `make run` and remove .run/
	@packaging/demo --clean
