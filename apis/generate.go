// Package apis holds no code of its own, only the commands that generate from the types
// below it: deep copies beside the types, the CRDs that the charts install, and their
// reference. AppliedWork lives on members; every other kind lives on the hub.
package apis

//go:generate go run ../test/generate/kinds
//go:generate go tool -modfile=../test/tools/go.mod controller-gen object paths=./...
//go:generate go tool -modfile=../test/tools/go.mod controller-gen crd paths=./... output:crd:dir=../deploy/charts/hub-agent/crds
//go:generate mkdir -p ../deploy/charts/member-agent/crds
//go:generate mv ../deploy/charts/hub-agent/crds/placement.kubernetes-fleet.io_appliedworks.yaml ../deploy/charts/member-agent/crds/
//go:generate go run ../test/generate/servedversions ../deploy/charts/hub-agent/crds ../deploy/charts/member-agent/crds
//go:generate go tool -modfile=../test/tools/go.mod crd-ref-docs --source-path=. --config=reference/config.yaml --templates-dir=reference/templates --renderer=markdown --max-depth=20 --log-level=ERROR --output-path=../deploy/docs/api-reference.md
//go:generate go run ../test/generate/referencepages ../deploy/docs/api-reference.md ../deploy/docs/api
