// Package apis holds no code of its own, only the commands that generate from the types
// below it: deep copies beside the types, the CRDs that the charts install, their
// reference, and apply configurations. AppliedWork lives on members; every other kind
// lives on the hub. Apply configurations are written last and removed first: code of a
// type that is gone neither stays nor is in the way of the other generators. That of the
// status of ClusterResourcePlacement is left out (noStatus): its name is that of a kind.
package apis

//go:generate rm -rf cluster/applyconfiguration fleetflow/applyconfiguration placement/applyconfiguration
//go:generate go run ../test/generate/kinds
//go:generate go tool -modfile=../test/tools/go.mod controller-gen object paths=./...
//go:generate go tool -modfile=../test/tools/go.mod controller-gen crd paths=./... output:crd:dir=../deploy/charts/hub-agent/crds
//go:generate mkdir -p ../deploy/charts/member-agent/crds
//go:generate mv ../deploy/charts/hub-agent/crds/placement.kubernetes-fleet.io_appliedworks.yaml ../deploy/charts/member-agent/crds/
//go:generate go run ../test/generate/servedversions ../deploy/charts/hub-agent/crds ../deploy/charts/member-agent/crds
//go:generate go tool -modfile=../test/tools/go.mod crd-ref-docs --source-path=. --config=reference/config.yaml --templates-dir=reference/templates --renderer=markdown --max-depth=20 --log-level=ERROR --output-path=../deploy/docs/api-reference.md
//go:generate go run ../test/generate/referencepages ../deploy/docs/api-reference.md ../deploy/docs/api
//go:generate go tool -modfile=../test/tools/go.mod controller-gen applyconfiguration paths=./cluster/v1beta1;./fleetflow/v1alpha1;./placement/v1beta1
