# make help lists the targets. What .ci/run does too is called from there, so that there is one way to do it.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export GOFLAGS += -buildvcs=false
LINT := go tool -modfile=tools/go.mod golangci-lint
FUZZTIME ?= 10s
BENCHTIME ?= 1s
PKG ?= ./...

.PHONY: help test race soak lint fmt bench fuzz cover tidy-check readme readme-check example ci

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

test: ## Run the tests, fast (PKG=./admission/... for some)
	go test $(PKG)

race: ## Run the tests with the race detector
	go test -race $(PKG)

soak: ## Run the long tests between processes
	go test -timeout 120m -v ./internal/admissionsoak -soak

lint: ## Run the linters (PKG=./admission/... for some); the first run builds them, which takes minutes
	$(LINT) run $(PKG)

fmt: ## Format the code
	$(LINT) fmt

bench: ## Run the benchmarks (BENCHTIME=1s, PKG=./...)
	go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(PKG)

fuzz: ## Run every fuzz target for a short time each (FUZZTIME=10s)
	@grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | \
	while IFS=: read -r file _ func; do \
	  echo "== $$file $${func#func }"; \
	  (cd "$$(dirname "$$file")" && go test -run '^$$' -fuzz "^$${func#func }$$" -fuzztime $(FUZZTIME) . </dev/null); \
	done

cover: ## Check the coverage of ident, middleware and escalation
	.ci/run coverage

tidy-check: ## Check that the go.mod and go.sum of every module are tidy
	.ci/run tidy

readme: ## Write the code of README.md anew from its examples
	go run ./internal/readmecheck -write README.md

readme-check: ## Check the code and the length of README.md
	.ci/run readme

example: ## Run the example
	go run ./examples/langchaingo

ci: ## Run everything that has to hold
	.ci/run
