# Debian 12; elsewhere scripts/setup says what it misses. `make help` lists the targets.
CARGO  ?= cargo
PREFIX ?= /usr/local
TARGET := $(or $(CARGO_TARGET_DIR),target)/x86_64-unknown-linux-gnu
REFIT  := $(TARGET)/release/refit

.PHONY: all demo test bench install help

all: ## build the release binary
	$(CARGO) build --locked --release -p refit

demo: ## the embedded example: no server, no root
	scripts/setup demo
	$(MAKE) all
	$(REFIT) demo

test: ## every check and every test, as this user and (as root) as nobody too
	scripts/setup test
	scripts/test

bench: ## side by side with peers
	scripts/setup bench
	$(MAKE) all
	bench/run

# Builds only what is not there yet, so that `sudo make install` needs no toolchain.
install: $(REFIT) ## copy the binary below PREFIX (/usr/local), respecting DESTDIR
	install -D -m 0755 $(REFIT) $(DESTDIR)$(PREFIX)/bin/refit

$(REFIT):
	$(MAKE) all

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10
