# Needs Go, make, git and bash; everything else is built from the Go module proxy.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Tools have a module of their own, so that the product does not depend on them.
TOOL := go tool -modfile=test/tools/go.mod
# TESTFLAGS reach every go test, as in: make test-unit TESTFLAGS='-v -run Staged'
TESTFLAGS ?=
# The race detector needs a C compiler; RACE= does without it.
RACE ?= $(if $(shell command -v "$$(go env CC)"),-race)
# How long `make fuzz` takes over each fuzz test.
FUZZTIME ?= 60s
# What `make generate` writes.
GENERATED := find apis deploy -name 'zz_generated*.go' -o -path 'deploy/charts/*/crds/*.yaml' -o -path deploy/api-reference.md -o -path deploy/docs/cli-reference.md
GOFILES := find . -name '*.go' -not -path './.*/*'

# step prints what a step is, runs it and prints the time it took.
define step
@begin=$$SECONDS; printf '== %s\n' '$(1)'; \
( $(2) ) || { printf '== %s: FAILED after %ss\n' '$(1)' "$$((SECONDS - begin))" >&2; exit 1; }; \
printf '   ok after %ss\n' "$$((SECONDS - begin))"
endef

.PHONY: help
help: ## Show this list, with the time each takes on two cores and with warm caches
	@awk -F ':.*## ' '/^##@ / { printf "\n%s\n", substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ See it run

.PHONY: demo
demo: ## Start a local fleet and take a staged rollout through it, gates, rollback and crashes included (about 5 min)
	@go run ./cmd/devfleet demo $(DEMOFLAGS)

.PHONY: fleet-up
fleet-up: ## Start a local fleet: a hub, three members, Temporal, the agents (about 1 min)
	@go run ./cmd/devfleet up

.PHONY: fleet-down
fleet-down: ## End the local fleet; its data stays (seconds)
	@go run ./cmd/devfleet down

##@ Work on it

.PHONY: build
build: ## Build the programs into bin/ (about 1 min)
	@mkdir -p bin
	go build -o bin/ ./cmd/...

# What the programs answer to --version, and the tag of their images.
TAG ?= $(shell git describe --tags --always --dirty)
# What goes into images: no paths, time or version control data, so that the same commit gives the same bytes.
RELEASE = CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w -buildid= -X github.com/fleetflow/fleetflow/cmd/version.number=$(TAG)'
PROGRAMS := hub-agent member-agent kubectl-fleet
# Platforms of `make release`, where `make images` pushes to, and what else it tells docker buildx.
PLATFORMS ?= linux/amd64 linux/arm64
REGISTRY ?= ghcr.io/fleetflow
IMAGEFLAGS ?= --sbom=true --provenance=true --push

.PHONY: release
release: ## Build the programs as they go into images, for PLATFORMS, into bin/<os>-<arch>/ (about 5 min)
	@for platform in $(PLATFORMS); do for program in $(PROGRAMS); do \
	out=bin/$${platform/\//-}/$$program; echo "== $$out"; GOOS=$${platform%/*} GOARCH=$${platform#*/} $(RELEASE) -o $$out ./cmd/$$program; done; done

.PHONY: sbom
sbom: release ## A software bill of materials (CycloneDX) beside every program of `make release` (about 6 min)
	@go run ./test/sbom -version '$(TAG)' $(foreach platform,$(PLATFORMS),$(foreach program,$(PROGRAMS),bin/$(subst /,-,$(platform))/$(program)))

.PHONY: images
images: ## Build images of the programs for PLATFORMS with docker buildx and push them to REGISTRY (about 10 min)
	@for program in $(PROGRAMS); do docker buildx build --platform $$(echo $(PLATFORMS) | tr ' ' ,) --build-arg PROGRAM=$$program \
	--build-arg VERSION=$(TAG) --tag $(REGISTRY)/$$program:$(TAG) $(IMAGEFLAGS) .; done

.PHONY: generate
generate: ## Write deep copies, CRDs, the API reference and that of kubectl fleet anew from the code (about 1 min)
	go generate ./apis/... ./cmd/kubectl-fleet

.PHONY: fmt
fmt: ## Format the Go code (seconds)
	@$(GOFILES) | xargs gofmt -w

##@ Check it

.PHONY: quick
quick: ## What has changed and what imports it: build, vet, unit tests, replay, borders. Under a minute when warm
	@.ci/quick

.PHONY: check
check: check-tidy check-generated check-format vet lint boundaries workflowcheck ## Everything that needs no running fleet and no test but the boundaries (about 4 min)

.PHONY: check-tidy
check-tidy: ## go.mod names exactly what is imported (seconds)
	$(call step,go.mod is tidy,go mod tidy -diff)

.PHONY: check-generated
check-generated: ## Generated files are what the types say (about 1 min)
	$(call step,generated code is current,\
	before=$$($(GENERATED) | sort | xargs sha256sum); go generate ./apis/... ./cmd/kubectl-fleet; after=$$($(GENERATED) | sort | xargs sha256sum); \
	diff <(echo "$$before") <(echo "$$after") || { echo 'the files above were stale and are written anew: commit them'; exit 1; })

.PHONY: check-format
check-format: ## Go code is formatted (seconds)
	$(call step,code is formatted,unformatted=$$($(GOFILES) | xargs gofmt -l); [ -z "$$unformatted" ] || { echo "$$unformatted"; echo 'run: make fmt'; exit 1; })

.PHONY: vet
vet: ## go vet, integration tests included (half a minute)
	$(call step,go vet,go vet -tags=integration ./...)

.PHONY: lint
lint: ## golangci-lint with .golangci.yml (about 2 min)
	$(call step,golangci-lint (compiled the first time),$(TOOL) golangci-lint run)

.PHONY: boundaries
boundaries: ## Who may import whom, and what the documents say about the tree (seconds)
	$(call step,imports stay inside their borders,go test -count=1 ./test/boundaries)

.PHONY: workflowcheck
workflowcheck: ## Workflow code is deterministic (half a minute)
	$(call step,workflows are deterministic,$(TOOL) workflowcheck -config test/tools/workflowcheck.yaml ./workflows/... ./worker/...)

##@ Test it

# Unit tests use all cores. The specs and guides on the local fleet mostly wait: for soak times, restarts, members that
# come and go. The other suites run beside them, and their output is printed at the end.
.PHONY: test
test: test-unit compile-suites ## All tests (about 35 min)
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; failed=0; \
	$(MAKE) test-crds test-charts test-install test-admission test-member test-takeover >"$$log" 2>&1 & beside=$$!; \
	$(MAKE) test-integration || failed=$$?; wait "$$beside" || failed=$$?; cat "$$log"; exit "$$failed"

# A compiler that uses all cores would take them from the local fleet: what the suites import is compiled before it starts.
.PHONY: compile-suites
compile-suites:
	@echo '== compiling the suites'
	@for module in . test/crds test/charts; do (cd $$module && go list -export -test -deps -tags integration ./... >/dev/null) || exit; done

# With the race detector on a busy machine more than a second may pass between two steps of a workflow: TEMPORAL_DEBUG
# keeps Temporal's deadlock detector out of it. A real deadlock ends with the timeout.
.PHONY: test-unit
test-unit: ## Unit, workflow and replay tests, with the race detector (about 12 min)
	@echo '== unit and workflow tests'
	@TEMPORAL_DEBUG=1 go test $(RACE) -timeout 30m $(TESTFLAGS) ./...

.PHONY: fuzz
fuzz: ## Every fuzz test for 60 s (FUZZTIME=10m for longer). What they begin with runs in test-unit, too (about 6 min)
	@git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]+\([a-z]+ \*testing\.F\)' -- '*_test.go' | while IFS=: read -r file found; do \
	name=$${found#func }; name=$${name%%(*}; folder=$${file%/*}; printf '== %s of %s\n' "$$name" "$$folder"; \
	(cd "$$folder" && go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x .); done

.PHONY: test-crds
test-crds: ## The CRDs, with the API server's own code (about 1 min)
	@echo '== CRDs against the API server'"'"'s own code'
	@cd test/crds && go test -timeout 10m $(TESTFLAGS) ./...

.PHONY: test-charts
test-charts: ## The Helm charts, rendered (about 1 min)
	@echo '== charts, rendered by Helm'
	@cd test/charts && go test -timeout 10m $(TESTFLAGS) ./...

.PHONY: test-admission
test-admission: ## What a real API server admits and refuses; needs no fleet. Never from the test cache (about 1 min)
	@echo '== admission tests on a bare hub'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/admission

.PHONY: test-member
test-member: ## What the member agent makes of a world that fails it, on a hub and a member; needs no fleet. Never from the test cache (about 2 min)
	@echo '== the member agent on one hub and one member'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/member

.PHONY: test-takeover
test-takeover: ## What becomes of a hub and members that KubeFleet has run, as recorded. Never from the test cache (about 2 min)
	@echo '== a live KubeFleet is taken over'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/takeover

.PHONY: bench-member
bench-member: ## What the member agent costs with 5,000 Works (FLEETFLOW_BENCH_WORKS=300 for fewer); on a machine that does nothing else
	@go test -v -count=1 -tags bench -timeout 40m -v $(TESTFLAGS) ./test/bench/member

.PHONY: test-install
test-install: ## The charts on real API servers, their agents run as their Deployments say. Never from the test cache (about 4 min)
	@echo '== charts, installed on real API servers'
	@cd test/charts && go test -count=1 -tags integration -timeout 40m -run 'Installed|BundledTemporal' $(TESTFLAGS) ./...

.PHONY: test-integration
test-integration: ## The whole thing on a local fleet; the first time builds its programs. Never from the test cache (about 22 min)
	@echo '== integration tests on a local fleet'
	@go test -count=1 -tags integration -timeout 60m $(TESTFLAGS) ./test/integration/...

.PHONY: test-crash
test-crash: ## Every loss at every moment of a run, on a local fleet; takes a quarter of an hour
	@echo '== crash matrix on a local fleet'
	@CRASH_MATRIX=1 go test -v -count=1 -tags integration -timeout 90m -run TestCrashMatrix $(TESTFLAGS) ./test/integration

.PHONY: bench
bench: ## The figures of the product with hollow members; takes about an hour. TESTFLAGS='-run TestRolling' for one
	@echo '== figures on a hub with hollow members'
	@go test -v -count=1 -tags bench -timeout 3h $(TESTFLAGS) ./test/bench
