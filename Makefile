# Debian 12 and 13; elsewhere scripts/setup names what it misses. `make help` lists the targets.
CARGO  ?= cargo
PREFIX ?= /usr/local
TARGET := $(or $(CARGO_TARGET_DIR),target)/$(shell uname -m)-unknown-linux-gnu
REFIT  := $(TARGET)/release/refit

.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*\#\#.*/\1/p' $(MAKEFILE_LIST))

all: ## build the release binary
	$(CARGO) build --locked --release -p refit

demo: ## the embedded example: no server, no root
	scripts/setup demo
	$(MAKE) all
	$(REFIT) demo

# scripts/under-load make test: the same while four busy loops and a disk writer run.
test: ## every check and every test, as this user and (as root) as nobody too
	scripts/setup test
	scripts/test

# SUITES='bookworm trixie sid' are tried, each by itself; their logs stay in /var/tmp/refit-fresh. An hour each.
test-fresh: ## the README's two commands on minimal roots of Debian 12 and 13 that hold nothing, as root
	scripts/test-fresh $(SUITES)

# Roots and a machine's disk in /var/tmp/refit-arm64, made once; `scripts/arm64 down` removes them.
test-arm64: ## build for arm64; unit tests, and what the architecture can change, in a machine that qemu emulates, as root
	scripts/arm64 test

# Roots and disks of three machines in /var/tmp/refit-machines, made once; `scripts/machines down` removes them.
test-machines: ## Linux 5.10, 6.1 and 6.12 of Debian 11, 12 and 13, with systemd and cgroup v2 alone, emulated by qemu, as root
	scripts/machines test

test-chromium: ## the browser under refit, with its sandbox (installs chromium)
	scripts/setup chromium
	$(MAKE) all
	$(CARGO) run --locked -p refit-tests -- --strict chromium::

# REFIT_PAGES=DIR keeps the pages, and pictures of them, to be looked at.
test-pages: ## the pages of results in a browser, narrow and broad, light and dark (installs chromium)
	scripts/setup chromium
	$(MAKE) all
	$(CARGO) run --locked -p refit-tests -- --strict pages::

# As root, where every backend can be tried.
conformance: ## compare each call with the kernel's answer, and write docs/conformance.md
	scripts/setup test
	$(MAKE) all
	$(CARGO) run --locked -p refit-tests -- --conformance >$(TARGET)/conformance.md
	mv $(TARGET)/conformance.md docs/conformance.md

# Each line `counted:` has the kills of each kind, and the calls or rows beneath them.
test-guardian: ## 10,000 kills of the guardian, and 10,000 of all of refit beneath databases and dpkg, as root
	scripts/setup test
	$(MAKE) all
	REFIT_GUARDIAN_KILLS=10000 $(CARGO) run --locked -p refit-tests -- guardian::killed_again_and_again kills::

# What `make test` does a few of. REFIT_KILLS and REFIT_SEQUENCES are other numbers.
test-sequences: ## 200 kills of comparisons and of applies that meet, kills at each call, power cuts, 5,000 random sequences, as root
	scripts/setup test
	$(MAKE) all
	REFIT_KILLS=$${REFIT_KILLS:-200} REFIT_SEQUENCES=$${REFIT_SEQUENCES:-5000} REFIT_POINTS=all \
		$(CARGO) run --locked -p refit-tests -- --strict random_kills:: sequences:: apply_kills:: apply_edited:: apply_full:: \
		apply_schema apply_power_cut:: schema_sqlite:: schema_postgresql::

# The last line counts: passed, failed, skipped. The same tests are in `make test`.
test-hostile: ## other users, hostile programs and files, limits, sandboxes, kills: all that attacks, as root
	scripts/setup test
	$(MAKE) all
	$(CARGO) run --locked -p refit-tests -- --strict attack:: hostile small_limits:: namespaces:: sandboxes:: openers:: \
		own_filter:: seccomp_limits:: guardian:: kills:: endurance:: rivals:: crash_remains:: pipes:: service_cleanup:: \
		crash_words::what_was_abandoned doctor_process:: takeaways:: takeaways::disk:: sequences:: random_kills::

# A container with systemd, in /var/tmp/refit-booted; `scripts/booted down --wipe` removes it. SUITE=trixie is Debian 13;
# without it it is this machine's own, or bookworm. REFIT_POINTS=all kills at each call, and not at one of six: a night.
test-services: ## apply and revert changes of real services on a Debian that systemd boots, as root, for hours
	scripts/setup services
	$(MAKE) all
	scripts/booted up
	$(CARGO) run --locked -p refit-tests -- --strict apply:: apply_kills:: apply_booted apply_end_to_end; status=$$?; scripts/booted down; exit $$status

# It is built once, in /var/tmp/refit-cluster, for 10 minutes, by Go 1.26; `scripts/cluster down --wipe` removes it.
test-kubernetes: ## a comparison spread over two nodes of a real Kubernetes, replicas, patches, a policy, as root
	scripts/setup kubernetes
	$(MAKE) all
	scripts/cluster up
	$(CARGO) run --locked -p refit-tests -- --strict kubernetes; status=$$?; scripts/cluster down; exit $$status

test-crash: ## simulated power cuts, and whether the lab's tests notice a broken lab, as root
	scripts/setup test
	$(MAKE) all
	$(CARGO) run --locked -p refit-tests -- crash
	scripts/crash-mutants

# scripts/fuzz --seconds 3600 recipe is one target for an hour. What breaks one is stored beside its parser, and tried in `make test`.
test-fuzz: ## damaged input for every parser, each for a minute
	scripts/setup test
	scripts/fuzz --seconds 60

# Each part is stored as it ends. RESUME=1 leaves out what this commit has measured; PARTS='fsync launch' are measured.
bench: ## side by side with peers
	scripts/setup bench
	$(MAKE) all
	bench/run $(if $(RESUME),--resume) $(PARTS)

# BUDGET=3m is for each recipe; without it each has its own.
gallery: ## run every recipe, and write docs/gallery.md
	scripts/setup test
	$(MAKE) all
	scripts/gallery $(REFIT) $(if $(BUDGET),--budget $(BUDGET)) $(RECIPES)

# A quiet machine, about an hour.
gain-and-risk: ## measure six services, cut their power, and write docs/gain-and-risk.md, as root
	scripts/setup crash
	$(MAKE) all
	scripts/gallery $(REFIT) --prove $(if $(BUDGET),--budget $(BUDGET)) $(RECIPES)

# NIGHT='--times 1 --recipes append-log,postfix-cleanup' makes it shorter. Not for a machine in use: two modes set vm.dirty_*.
crash-night: ## cut the power of every recipe with a promise, as root, for hours, and write docs/crash-verdicts.md
	scripts/setup crash
	$(MAKE) all
	scripts/crash-night $(REFIT) $(NIGHT)

rule-cuts: ## the table of docs/durability.md: what power cuts take where a rule of the durability check is broken, as root
	scripts/setup crash
	$(MAKE) all
	REFIT_BIN=$(REFIT) scripts/rule-cuts

# Builds only what is not there yet, so that `sudo make install` needs no toolchain.
install: $(REFIT) ## copy binary, manual pages, completions, docs below PREFIX (/usr/local), respecting DESTDIR
	REFIT=$(abspath $(REFIT)) scripts/dist layout "$(DESTDIR)" "$(PREFIX:/%=%)"

# On amd64 also those of arm64, where `scripts/arm64 setup` was run. ARCH=amd64 makes that one alone.
deb: ## make dist/refit-linux_VERSION_ARCH.deb
	scripts/setup dist
	scripts/dist deb dist $(ARCH)

rpm: ## make dist/refit-linux-VERSION-1.MACHINE.rpm
	scripts/setup dist
	scripts/dist rpm dist $(ARCH)

dist: ## make the .deb, the .rpm, a tarball, an SBOM and SHA256SUMS in dist/
	scripts/setup dist
	scripts/dist all dist $(ARCH)

# Debian 12, 13 and 11 are made once, in /var/tmp/refit-dist. PARTS='debian12 rpm' are tried; reproducible and cargo build anew.
test-dist: dist ## install and purge the packages, compare two builds, load the preload with an old glibc, as root
	scripts/test-dist $(PARTS)

$(REFIT):
	$(MAKE) all

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16
