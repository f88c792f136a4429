// The module whose manifests test/integration installs. Nothing of it is built.
module github.com/fleetflow/fleetflow/test/argocd

go 1.26.0

require github.com/argoproj/argo-cd/v3 v3.5.7
