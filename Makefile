# Needs Go, make, git and bash; everything else is built from the Go module proxy, but for what .ci/needs says.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Tools have a module of their own, so that the product does not depend on them.
TOOL := go tool -modfile=test/tools/go.mod
# Everything is compiled as devfleet compiles the programs of the local fleet, so that what they share is compiled once: without
# paths, which all checkouts then share, and without what debuggers read. To debug: make GOFLAGS= …
export GOFLAGS ?= -trimpath -buildvcs=false -gcflags=all=-dwarf=false
export CGO_ENABLED := 0
# TESTFLAGS reach every go test, as in: make test-unit TESTFLAGS='-v -run Staged'
TESTFLAGS ?=
# They come to the shell as they are given: the $ of a regular expression names no variable of make.
override TESTFLAGS := $(value TESTFLAGS)
# The race detector needs a C compiler; RACE= does without it.
RACE ?= $(if $(shell .ci/needs find compiler 2>&-),-race)
# What tests need beyond Go, make, git and bash: a target each, which brings it where that may be.
NEEDS := browser curl postgresql $(if $(filter file,$(origin RACE)),compiler)
# How long `make fuzz` takes over each fuzz test.
FUZZTIME ?= 60s
# What `make generate` writes.
GENERATED := find apis deploy -name 'zz_generated*.go' -o -path 'apis/*/applyconfiguration/*.go' -o -path 'deploy/charts/*/crds/*.yaml' -o -path "deploy/docs/api/*.md" -o -path "deploy/docs/cli/*.md" -o -path 'deploy/charts/*/values.schema.json' -o -path 'deploy/charts/*/README.md'
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
	@go run ./test/devfleet demo $(DEMOFLAGS)

.PHONY: fleet-up
fleet-up: ## Start a local fleet: a hub, three members, Temporal, the agents (about 1 min)
	@go run ./test/devfleet up

.PHONY: fleet-down
fleet-down: ## End the local fleet; its data stays (seconds)
	@go run ./test/devfleet down

##@ Work on it

.PHONY: build
build: ## Build the programs into bin/ (about 1 min)
	@mkdir -p bin
	go build -buildvcs=auto -o bin/ ./cmd/...

# What the programs answer to --version, and the tag of their images.
TAG ?= $(shell git describe --tags --always --dirty)
# What goes into images: no paths, time or version control data, so that the same commit gives the same bytes.
RELEASE = GOFLAGS= go build -trimpath -buildvcs=false -ldflags='-s -w -buildid= -X github.com/fleetflow/fleetflow/cmd/version.number=$(TAG)'
# bundled-temporal has the Temporal CLI beside it, of the module of the local fleet's programs.
PROGRAMS := hub-agent member-agent fleet-dashboard kubectl-fleet bundled-temporal
# Platforms of `make release`, where `make images` pushes to, and what else it tells docker buildx.
PLATFORMS ?= linux/amd64 linux/arm64
REGISTRY ?= ghcr.io/fleetflow
IMAGEFLAGS ?= --sbom=true --provenance=true --push

.PHONY: release
release: ## Build the programs as they go into images, for PLATFORMS, into bin/<os>-<arch>/ (about 5 min)
	@for platform in $(PLATFORMS); do for program in $(PROGRAMS); do \
	out=bin/$${platform/\//-}/$$program; echo "== $$out"; GOOS=$${platform%/*} GOARCH=$${platform#*/} $(RELEASE) -o $$out ./cmd/$$program; \
	[ "$$program" != bundled-temporal ] || (cd test/controlplane; GOFLAGS= GOOS=$${platform%/*} GOARCH=$${platform#*/} go build -trimpath -buildvcs=false -ldflags='-s -w -buildid=' \
	-o ../../bin/$${platform/\//-}/temporal github.com/temporalio/cli/cmd/temporal); done; done

.PHONY: sbom
sbom: release ## A software bill of materials (CycloneDX), with licenses, beside every program of `make release` (about 9 min)
	@go run ./test/sbom -version '$(TAG)' $(foreach platform,$(PLATFORMS),$(foreach program,$(PROGRAMS),bin/$(subst /,-,$(platform))/$(program)))
	@$(if $(filter bundled-temporal,$(PROGRAMS)),go run ./test/sbom $(foreach platform,$(PLATFORMS),bin/$(subst /,-,$(platform))/temporal))

# The images that the programs are built in and run on. A release takes them by the digests that their tags have at the time.
BUILD_IMAGE ?= golang:1.26.11
BASE_IMAGE ?= gcr.io/distroless/static-debian12:nonroot
# Where the digests of what was pushed are written, a line for each: what it is, and where it is by its digest.
RELEASED := bin/released.txt
HELM ?= helm
COSIGN ?= cosign
# Charts have versions by SemVer.
CHART_VERSION ?= $(patsubst v%,%,$(TAG))

.PHONY: images
images: ## Build images of the programs for PLATFORMS with docker buildx, on base images by digest, and push them to REGISTRY (about 10 min)
	@mkdir -p bin; : >$(RELEASED); \
	pin() { case "$$1" in *@sha256:*) echo "$$1";; *) echo "$${1%:*}@$$(docker buildx imagetools inspect "$$1" --format '{{.Manifest.Digest}}')";; esac; }; \
	build=$$(pin $(BUILD_IMAGE)); base=$$(pin $(BASE_IMAGE)); \
	for program in $(PROGRAMS); do docker buildx build --platform $$(echo $(PLATFORMS) | tr ' ' ,) --build-arg PROGRAM=$$program \
	--build-arg VERSION=$(TAG) --build-arg BUILD_IMAGE=$$build --build-arg BASE_IMAGE=$$base --tag $(REGISTRY)/$$program:$(TAG) \
	--metadata-file bin/$$program.json $(IMAGEFLAGS) .; \
	digest=$$(sed -n 's/.*"containerimage.digest": *"\(sha256:[0-9a-f]*\)".*/\1/p' bin/$$program.json | head -1); \
	[ -n "$$digest" ] || { echo "docker buildx says no digest of $$program" >&2; exit 1; }; \
	echo "$$program $(REGISTRY)/$$program@$$digest" | tee -a $(RELEASED); done

.PHONY: charts
charts: ## Package the charts with the digests of `make images` in their values, and push them to REGISTRY/charts (seconds)
	@[ -s $(RELEASED) ] || { echo 'no image was pushed: run make images' >&2; exit 1; }; \
	rm -rf bin/charts; mkdir -p bin/charts; for chart in hub-agent member-agent fleet-dashboard; do \
	digest=$$(sed -n "s|^$$chart .*@\(sha256:[0-9a-f]*\)$$|\1|p" $(RELEASED)); \
	[ -n "$$digest" ] || { echo "no digest of $$chart in $(RELEASED): run make images" >&2; exit 1; }; \
	cp -r deploy/charts/$$chart bin/charts/$$chart; \
	plugin=$$(sed -n "s|^kubectl-fleet .*@\(sha256:[0-9a-f]*\)$$|\1|p" $(RELEASED)); \
	server=$$(sed -n "s|^bundled-temporal .*@\(sha256:[0-9a-f]*\)$$|\1|p" $(RELEASED)); \
	sed -i -e "0,/^  digest: \"\"/s//  digest: $$digest/" -e "s/^    digest: \"\"/    digest: \"$$plugin\"/" -e "s/^      digest: \"\"/      digest: \"$$server\"/" -e "s|ghcr.io/fleetflow/|$(REGISTRY)/|" bin/charts/$$chart/values.yaml; \
	sed -i -e "s|image: ghcr.io/fleetflow/\(.*\):.*|image: $(REGISTRY)/\1:$(TAG)|" bin/charts/$$chart/Chart.yaml; \
	$(HELM) package bin/charts/$$chart --version $(CHART_VERSION) --app-version $(TAG) --destination bin/charts; \
	pushed=$$($(HELM) push bin/charts/$$chart-$(CHART_VERSION).tgz oci://$(REGISTRY)/charts 2>&1) || { echo "$$pushed" >&2; exit 1; }; echo "$$pushed"; \
	digest=$$(echo "$$pushed" | sed -n 's/^Digest: *//p'); \
	[ -n "$$digest" ] || { echo "helm says no digest of the chart $$chart" >&2; exit 1; }; \
	echo "chart-$$chart $(REGISTRY)/charts/$$chart@$$digest" | tee -a $(RELEASED); done

# Without a key cosign asks the identity provider of the environment, such as that of a CI, and notes the signature in the log of
# Sigstore; COSIGNFLAGS='--key …' signs with a key.
COSIGNFLAGS ?=

.PHONY: sign
sign: ## Sign with cosign, by digest, the images and charts that `make images charts` has pushed (seconds)
	@[ -s $(RELEASED) ] || { echo 'nothing was pushed: run make images charts' >&2; exit 1; }; \
	while read -r what where; do echo "== $$what"; $(COSIGN) sign --yes $(COSIGNFLAGS) "$$where"; done <$(RELEASED)

# Where programs of a release run: the agents in images, the plugin wherever people work.
AGENT_PLATFORMS ?= linux/amd64 linux/arm64
PLUGIN_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: release-all
release-all: ## All of a release, as in VERSION=0.2.0, into bin/release: programs, charts, SBOMs, checksums, krew manifest, notes; PUSH=yes pushes images and charts (about 15 min)
	@VERSION='$(VERSION)' PUSH='$(PUSH)' REGISTRY='$(REGISTRY)' COSIGN='$(COSIGN)' AGENT_PLATFORMS='$(AGENT_PLATFORMS)' PLUGIN_PLATFORMS='$(PLUGIN_PLATFORMS)' .ci/release-all

.PHONY: generate
generate: ## Write deep copies, apply configurations, CRDs, the API reference, that of kubectl fleet and the charts' tables of values anew (about 1 min)
	go generate ./apis/... ./cmd/kubectl-fleet ./deploy/charts

# The version that `make docs` builds the site of, as in DOCS_VERSION=v0.2.0.
DOCS_VERSION ?= main

.PHONY: docs
docs: ## Build the site with the guides into bin/site/DOCS_VERSION (main); needs node and npm (half a minute)
	@DOCS_VERSION='$(DOCS_VERSION)' .ci/site

.PHONY: fmt
fmt: ## Format the Go code (seconds)
	@$(GOFILES) | xargs gofmt -w

##@ Check it

.PHONY: quick
quick: ## What has changed and what imports it: build, vet, unit tests, replay, borders. Under a minute when warm
	@.ci/quick

.PHONY: check
check: check-tidy check-generated check-format lint boundaries documents workflowcheck vulncheck ## Everything that needs no running fleet, with tests of the boundaries and the documents only (about 4 min)

# All modules but those that no package of ours imports anything of, of which one pins what a guide reads and one the tools, and
# Prometheus, for which go mod tidy downloads two gigabytes that its build leaves out.
MODULES := $(filter-out test/argocd test/tools test/controlplane/prometheus,$(patsubst %/go.mod,%,$(patsubst go.mod,./go.mod,$(wildcard go.mod test/*/go.mod test/*/*/go.mod))))

.PHONY: check-tidy
check-tidy: ## go.mod of every module names exactly what is imported (seconds)
	$(call step,go.mod is tidy,for module in $(MODULES); do (cd $$module && go mod tidy -diff) || { echo "run: go mod tidy in $$module"; exit 1; }; done)

.PHONY: check-generated
check-generated: ## Generated files are what the types say (about 1 min)
	$(call step,generated code is current,\
	before=$$($(GENERATED) | sort | xargs sha256sum); go generate ./apis/... ./cmd/kubectl-fleet ./deploy/charts; after=$$($(GENERATED) | sort | xargs sha256sum); \
	diff <(echo "$$before") <(echo "$$after") || { echo 'the files above were stale and are written anew: commit them'; exit 1; })

.PHONY: check-format
check-format: ## Go code is formatted (seconds)
	$(call step,code is formatted,unformatted=$$($(GOFILES) | xargs gofmt -l); [ -z "$$unformatted" ] || { echo "$$unformatted"; echo 'run: make fmt'; exit 1; })

.PHONY: vet
vet: ## go vet, integration tests included (half a minute)
	$(call step,go vet,go vet -tags=integration ./...)

.PHONY: lint
lint: ## golangci-lint with .golangci.yml, all of go vet included (about 2 min)
	$(call step,golangci-lint (compiled the first time),$(TOOL) golangci-lint-kube-api-linter run --allow-parallel-runners)

.PHONY: boundaries
boundaries: ## Who may import whom, and what the documents say about the tree (seconds)
	$(call step,imports stay inside their borders,go test -count=1 ./test/boundaries)

.PHONY: documents
documents: ## No dead link, no command that no test runs and no mark excuses, no phrase that readers stumble over (seconds)
	$(call step,documents are in order,go test -count=1 ./test/docs ./test/dashboards ./test/samples && cd test/bench/report && go test -count=1 .)

.PHONY: workflowcheck
workflowcheck: ## Workflow code is deterministic (half a minute)
	$(call step,workflows are deterministic,$(TOOL) workflowcheck -config test/tools/workflowcheck.yaml ./workflows/... ./worker/...)

# Which known vulnerabilities the code reaches; govulncheck ends with 3 if there are any. Its database is on the internet, or
# where GOVULNDB says. Without it there is nothing to check against, which is no fault of the code.
.PHONY: vulncheck
vulncheck: ## No code that is called has a known vulnerability; needs https://vuln.go.dev or GOVULNDB, and says so without (half a minute)
	$(call step,no known vulnerabilities,\
	code=0; found=$$($(TOOL) govulncheck ./... 2>&1) || code=$$?; \
	if [ "$$code" = 0 ]; then exit; fi; \
	if [ "$$code" != 3 ] && grep -qE 'fetching vulnerabilities|dial tcp|no such host|vuln.go.dev' <<<"$$found"; then \
	echo '   NOT CHECKED: the database of vulnerabilities cannot be reached (https://vuln.go.dev or GOVULNDB)'; exit; fi; \
	echo "$$found"; exit "$$code")

##@ Test it

# What runs Pods is brought only by name.
.PHONY: needs needs-pods $(NEEDS:%=needs-%)
needs: $(NEEDS:%=needs-%) ## Bring what tests need beyond Go, make, git and bash, where this user may install packages; else say what is left out
needs-pods $(NEEDS:%=needs-%): needs-%:
	@.ci/needs bring $*

# Unit tests use all cores. The specs and the guides on local fleets mostly wait: for soak times, restarts, members that
# come and go. The guides, on a fleet of their own, and the other suites run beside the specs, and their output is printed at
# the end; but not the suite in a browser, whose pages are drawn by processes that give way to all others.
.PHONY: test
test: needs test-unit compile-suites test-web ## All tests; the last lines count what was left out, if anything (about 40 min)
	@log=$$(mktemp); guides=$$(mktemp); trap 'rm -f "$$log" "$$guides"' EXIT; failed=0; \
	$(MAKE) test-charts test-gitops test-soak test-install test-admission test-member test-takeover >"$$log" 2>&1 & beside=$$!; \
	$(MAKE) test-documents test-crds test-differential test-principals test-outages test-pods >"$$guides" 2>&1 & reading=$$!; \
	$(MAKE) test-integration test-security || failed=$$?; wait "$$reading" || failed=$$?; cat "$$guides"; \
	wait "$$beside" || failed=$$?; cat "$$log"; .ci/needs left-out $(NEEDS) pods; exit "$$failed"

# A compiler that uses all cores would take them from the local fleet: what the suites import, and the programs that they
# run, are compiled before they start.
.PHONY: compile-suites
compile-suites:
	@echo '== compiling the suites'
	@go run ./test/devfleet tools --with-prometheus --with-temporal-server $$(! .ci/needs find pods >/dev/null 2>&1 || echo --with-nodes)
	@for module in . test/crds test/charts test/gitops test/web test/controlplane/prometheus; do (cd $$module && go list -export -test -deps -tags integration ./... >/dev/null) || exit; done

# With the race detector on a busy machine more than a second may pass between two steps of a workflow: TEMPORAL_DEBUG
# keeps Temporal's deadlock detector out of it. A real deadlock ends with the timeout.
#
# The detector makes a test many times slower: only packages in which goroutines start are tested with it, which test/concurrent
# tells by their code. A garbage collector that runs less often takes a sixth off the CPU time. What go test vets, lint does.
UNIT := TEMPORAL_DEBUG=1 GOGC=400 go test -vet=off -timeout 30m
UNIT_RACE := $(if $(RACE),CGO_ENABLED=1) $(UNIT) $(RACE)

.PHONY: test-unit
test-unit: $(filter needs-compiler,$(NEEDS:%=needs-%)) ## Unit, workflow and replay tests, with the race detector where there is concurrency (about 6 min)
	@echo '== unit and workflow tests'
	@concurrent=$$(go run ./test/concurrent); others=$$(go run ./test/concurrent -without); failed=0; \
	$(UNIT_RACE) $(TESTFLAGS) $$concurrent || failed=$$?; $(UNIT) $(TESTFLAGS) $$others || failed=$$?; exit "$$failed"

.PHONY: test-race
test-race: ## Unit, workflow and replay tests, all with the race detector (about 10 min)
	@echo '== unit and workflow tests with the race detector'
	@$(UNIT_RACE) $(TESTFLAGS) ./...

.PHONY: fuzz
fuzz: ## Every fuzz test for 60 s (FUZZTIME=10m for longer). What they begin with runs in test-unit, too (about 6 min)
	@git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]+\([a-z]+ \*testing\.F\)' -- '*_test.go' | while IFS=: read -r file found; do \
	name=$${found#func }; name=$${name%%(*}; folder=$${file%/*}; printf '== %s of %s\n' "$$name" "$$folder"; \
	(cd "$$folder" && go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x .); done

# The test cache of a module knows nothing of files outside it, such as definitions and charts: what reads them always runs.
.PHONY: test-crds
test-crds: ## The CRDs, with the API server's own code (about 1 min)
	@echo '== CRDs against the API server'"'"'s own code'
	@cd test/crds && go test -count=1 -timeout 10m $(TESTFLAGS) ./...

.PHONY: test-charts
test-charts: ## The Helm charts, rendered, and their alerts asked of Prometheus' engine (about 2 min)
	@echo '== charts, rendered by Helm'
	@cd test/charts && go test -count=1 -timeout 10m $(TESTFLAGS) ./...
	@echo '== alerts, evaluated by Prometheus'
	@cd test/controlplane/prometheus && go test -count=1 -timeout 10m $(TESTFLAGS) ./...

.PHONY: test-gitops
test-gitops: ## What the samples tell Argo CD and Flux, with their engines (seconds)
	@echo '== samples for Argo CD and Flux, with their engines'
	@cd test/gitops && go test -count=1 -timeout 10m $(TESTFLAGS) ./...

.PHONY: test-web
test-web: needs-browser ## The dashboard in headless Chromium; needs no fleet. Never from the test cache (about 1 min)
	@echo '== the dashboard in a browser'
	@if .ci/needs find browser >/dev/null 2>&1; then cd test/web && go test -count=1 -timeout 15m $(TESTFLAGS) ./...; else .ci/needs left-out browser; fi

.PHONY: pictures
pictures: needs-browser ## Takes the pictures of the guide to the dashboard anew (half a minute)
	cd test/web && FLEETFLOW_WEB_PICTURES=1 go test -count=1 -run TestPicturesOfTheGuide .

.PHONY: test-docs
test-docs: needs-browser docs ## The site of `make docs` in headless Chromium: search, dark, versions, every link; no part of `make test` (about 1 min)
	@echo '== the site in a browser'
	@if .ci/needs find browser >/dev/null 2>&1; then cd test/web && go test -count=1 -tags site -timeout 15m -run 'Guides|LinksOfTheSite' $(TESTFLAGS) ./...; else .ci/needs left-out browser; fi

.PHONY: test-admission
test-admission: ## What a real API server admits and refuses; needs no fleet. Never from the test cache (about 1 min)
	@echo '== admission tests on a bare hub'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/admission

.PHONY: test-member
test-member: ## What the member agent makes of a world that fails it, on a hub and a member; needs no fleet. Never from the test cache (about 2 min)
	@echo '== the member agent on one hub and one member'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/member

.PHONY: test-differential
test-differential: ## 500 drawn pairs of manifests on a real API server, of a fixed seed; needs no fleet. Never from the test cache (about 1 min)
	@echo '== objects are what their manifests say'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/differential

# How many pairs of manifests are drawn, and from which seed; without a seed, one is taken by chance and printed.
PAIRS ?= 10000

.PHONY: differential
differential: ## PAIRS drawn pairs of manifests on a real API server, of SEED; without it of a seed by chance, which is printed (about 10 min)
	@echo '== objects are what their manifests say'
	@go test -v -count=1 -tags integration -timeout 3h $(TESTFLAGS) ./test/differential -args -pairs $(PAIRS) -seed $(or $(SEED),0)

.PHONY: test-takeover
test-takeover: ## What becomes of a hub and members that KubeFleet has run, as recorded. Never from the test cache (about 2 min)
	@echo '== a live KubeFleet is taken over'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/takeover

.PHONY: test-security
test-security: ## Attacks on a hub, two members and Temporal, each with the attacker's own credentials. Never from the test cache (about 3 min)
	@echo '== attacks on a fleet'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/security

.PHONY: test-principals
test-principals: ## Who counts as the sender of an approval, on Temporal's server for production with an authorizer. Never from the test cache (about 1 min)
	@echo '== approvals on a Temporal that knows its users'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/principals

.PHONY: test-pods
test-pods: ## Charts, agents and workloads that break on real Pods, for root with the packages of `make needs-pods`. Never from the test cache
	@echo '== real Pods on a hub and a member'
	@if .ci/needs find pods >/dev/null 2>&1; then go test -count=1 -tags integration -timeout 30m -run '^TestPods$$' ./test/pods $(TESTFLAGS); else .ci/needs left-out pods; fi

.PHONY: test-pods-long
test-pods-long: ## What takes longer on real Pods, and is no part of `make test`: an upgrade within a run, longer outages, changes of the hub's release, policies kept
	@echo '== real Pods, what takes longer'
	@if .ci/needs find pods >/dev/null 2>&1; then go test -count=1 -tags integration -timeout 45m -run '^TestPodsLong$$' ./test/pods $(TESTFLAGS); else .ci/needs left-out pods; fi

.PHONY: test-outages
test-outages: ## What everybody says of a fleet of which a process is down, each in turn. Never from the test cache (about 2 min)
	@echo '== processes of a fleet go down'
	@go test -count=1 -tags integration -timeout 40m $(TESTFLAGS) ./test/outages

.PHONY: bench-member
bench-member: ## What the member agent costs with 5,000 Works (FLEETFLOW_BENCH_WORKS=300 for fewer); on a machine that does nothing else
	@go test -v -count=1 -tags bench -timeout 40m -v $(TESTFLAGS) ./test/bench/member

.PHONY: test-install
test-install: needs-postgresql ## The charts on real API servers, their agents run as their Deployments say; the production page, walked through. Never from the test cache (about 9 min)
	@echo '== charts, installed on real API servers'
	@cd test/charts && go test -count=1 -tags integration -timeout 60m -run 'Installed|BundledTemporal' $(TESTFLAGS) ./...

SPECS := go test -vet=off -count=1 -tags integration -timeout 80m

.PHONY: test-integration
test-integration: needs-browser ## The whole thing on a local fleet; the first time builds its programs. Never from the test cache (about 22 min)
	@echo '== integration tests on a local fleet'
	@$(SPECS) -skip '^TestDocuments$$' $(TESTFLAGS) ./test/integration

.PHONY: test-documents
test-documents: needs-curl ## Every command that the guides print, on a local fleet of its own. Never from the test cache (about 20 min)
	@echo '== guides, followed on a local fleet'
	@FLEETFLOW_OWN_FLEET=.fleet-documents $(SPECS) -run '^TestDocuments$$' $(TESTFLAGS) ./test/integration

.PHONY: test-prometheus
test-prometheus: ## The guide with a real Prometheus, alone; make test-documents leaves it out where Prometheus has not been built (about 3 min, the first time 5)
	@echo '== a canary that watches Prometheus'
	@go run ./test/devfleet tools --with-prometheus
	@FLEETFLOW_OWN_FLEET=.fleet-documents go test -count=1 -tags integration -timeout 30m $(TESTFLAGS) -run TestDocuments/analysis-prometheus ./test/integration

.PHONY: test-crash
test-crash: ## Every loss at every moment of a run, on a local fleet; takes a quarter of an hour
	@echo '== crash matrix on a local fleet'
	@CRASH_MATRIX=1 go test -v -count=1 -tags integration -timeout 90m -run TestCrashMatrix $(TESTFLAGS) ./test/integration

# How long a soak goes on, and the seed of what happens in it; without a seed, one is taken by chance and printed.
MINUTES ?= 10
SEED ?= 0

.PHONY: soak
soak: ## Torture a local fleet for MINUTES and judge every write to the hub; SEED repeats what happened. TESTFLAGS='--simulated 30'; TESTFLAGS='--from HEAD~1' upgrades it meanwhile, with --worker-versions one build at a time
	@echo '== soak'
	@cd test/soak && go run . run --minutes $(MINUTES) --seed $(SEED) $(TESTFLAGS)

.PHONY: test-soak
test-soak: ## What makes a soak: its script, its bundles, its judge (seconds)
	@echo '== the parts of the soak'
	@cd test/soak && go vet . && go test -count=1 -timeout 10m $(TESTFLAGS) ./...

.PHONY: bench
bench: ## The figures of the product with hollow members, kept in bin/bench/COMMIT.jsonl; takes about an hour. TESTFLAGS='-run TestRolling' for one
	@echo '== figures on a hub with hollow members'
	@go test -v -count=1 -tags bench -timeout 3h $(TESTFLAGS) ./test/bench

# The report draws, for which the product shall need nothing: it is a module of its own. Paths are absolute, as it runs in its folder.
REPORT := cd test/bench/report && go run .

# A quarter of the runs: what is compared is ratios, and memory that grows with the runs.
.PHONY: bench-quick
bench-quick: ## The ten figures that matter with their ratios, and which target is missed (at most 10 min); STRICT=1 fails if one is
	@rm -f bin/bench/quick.jsonl
	@failed=0; FLEETFLOW_BENCH_SHARE=4 FLEETFLOW_BENCH_RESULTS=quick go test -count=1 -tags bench -timeout 30m \
	-run 'TestStagedOne$$|TestStagedTwenty$$|TestRestart$$' $(TESTFLAGS) ./test/bench || failed=$$?; \
	$(REPORT) $(if $(STRICT),strict,quick) '$(CURDIR)/bin/bench/quick.jsonl' && exit "$$failed"

.PHONY: bench-compare
bench-compare: ## Two results of make bench side by side, medians and spread, as in OLD=bin/bench/1a2b3c4.jsonl NEW=bin/bench/5d6e7f8.jsonl (seconds)
	@[ -n '$(OLD)' ] && [ -n '$(NEW)' ] || { echo 'say which two, as in make bench-compare OLD=bin/bench/1a2b3c4.jsonl NEW=bin/bench/5d6e7f8.jsonl; here are:' >&2; ls -t bin/bench/*.jsonl >&2; exit 2; }
	@$(REPORT) compare '$(abspath $(OLD))' '$(abspath $(NEW))'

.PHONY: figures
figures: ## The plots and tables of deploy/docs/figures.md from RESULTS=bin/bench/1a2b3c4.jsonl, which is kept beside the page; without it from what is kept (seconds)
	@$(REPORT) write '$(CURDIR)/deploy/docs/figures.md' '$(abspath $(or $(RESULTS),deploy/docs/figures.jsonl))'
