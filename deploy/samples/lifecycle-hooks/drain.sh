#!/usr/bin/env bash
# A controller for lifecycle hooks, to run beside the placement in placement.yaml: it takes traffic off a cluster before
# its resources change, and puts it on again afterwards. Its only means is one label of the cluster's binding.
#
# usage: drain.sh PLACEMENT COMMAND...     COMMAND is called with "on" or "off" and the name of the cluster
set -euo pipefail
placement=$1
shift
label=example.com/in-service
columns='{.metadata.name}{" "}{.spec.targetCluster}{" "}{.metadata.labels.fleetflow\.io/lifecycle-state}{"\n"}'

# Each line is a binding as it is now: its name, its cluster, and where that stands between the hooks.
answer() {
  while read -r binding cluster state; do
    case $state in
      PreparingUpdate | PreparingRemove) traffic=off ;;
      Updating) continue ;;
      *) traffic=on ;; # PreparingAvailable, Updated, Normal, or nothing yet
    esac
    if [[ $traffic == off ]]; then
      "${command[@]}" off "$cluster" && kubectl label clusterresourcebinding "$binding" "$label-" >/dev/null
    elif "${command[@]}" on "$cluster"; then
      kubectl label --overwrite clusterresourcebinding "$binding" "$label=yes" >/dev/null
    fi || echo "the traffic of $cluster could not be turned $traffic, trying again" >&2
  done
}

command=("$@")
while sleep 1; do # a watch ends now and then; what is there is told again by the next
  kubectl get clusterresourcebindings -l "kubernetes-fleet.io/parent-CRP=$placement" --watch -o "jsonpath=$columns" | answer || true
done
