# make help lists the targets.

SHELL := /bin/bash
.DELETE_ON_ERROR:

FUZZTIME ?= 20s
FOLLOWERTIME ?= 10m

# Built once and not by go run: both modules use them, each with an environment that would build them anew.
TOOLS := $(CURDIR)/bin/tools
export GOBIN := $(TOOLS)

# The sandbox is a module of its own. It is built without cgo, so it is tested so too (-race would need cgo).
SANDBOX := cd cmd/redrive-sandbox && CGO_ENABLED=0

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: build
build: ## Build bin/redrive
	go build -o bin/redrive ./cmd/redrive

.PHONY: sandbox
sandbox: ## Build bin/redrive-sandbox, a server in memory to try redrive on
	$(SANDBOX) go build -o ../../bin/redrive-sandbox .

.PHONY: test
test: test-packages ## Run all tests with -race; as root on Debian it installs the programs they need
	go test -race -timeout 30m -p 2 ./...
	$(SANDBOX) go build -o /dev/null .
	$(SANDBOX) go test -timeout 5m ./...

.PHONY: test-packages
test-packages:
	scripts/test-packages

.PHONY: lint
lint: ## go vet, staticcheck and gofumpt, in both modules
	go install honnef.co/go/tools/cmd/staticcheck@v0.8.2
	go install mvdan.cc/gofumpt@v0.12.0
	go vet ./...
	$(TOOLS)/staticcheck ./...
	$(SANDBOX) go vet ./...
	$(SANDBOX) $(TOOLS)/staticcheck ./...
	@unformatted=$$($(TOOLS)/gofumpt -l .) && if [ -n "$$unformatted" ]; then \
		echo "not formatted; run bin/tools/gofumpt -w on:"; echo "$$unformatted"; exit 1; fi

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (20s) each, the one of the protocol follower for FOLLOWERTIME (10m)
	scripts/fuzz $(FUZZTIME) $(FOLLOWERTIME)

.PHONY: faults
faults: test-packages ## Show at length that the proxy cannot hurt a client; as root, for a small disk. FAULTS='Drain' picks cases
	REDRIVE_FAULTS=full go test -race -count 1 -timeout 90m -v -run 'TestFault.*$(FAULTS)' ./e2e

.PHONY: soak
soak: test-packages ## Ten minutes of mixed load through a recording proxy: flat memory, no error, nothing lost
	REDRIVE_FAULTS=full go test -race -count 1 -timeout 30m -v -run 'TestSoak$$' ./e2e

.PHONY: bench
bench: build test-packages ## Measure redrive beside HAProxy, some half an hour; BENCH="--only throughput --rounds 7" passes flags on
	go run ./bench --redrive bin/redrive $(BENCH)

.PHONY: bench-go
bench-go: ## Run the Go benchmarks, ten times for benchstat
	go test -run '^$$' -bench . -count 10 ./...

.PHONY: demo
demo: build sandbox ## Record, analyze and replay on the sandbox; the files stay in demo/
	scripts/demo

.PHONY: clean
clean: ## Remove what was built and the demo's files
	rm -rf bin demo
