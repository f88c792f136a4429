#!/usr/bin/env bash
# Has a cluster leave a fleet, in the order that leaves nothing behind: what was placed on it is removed, its agent
# leaves, and only then the agent is uninstalled and its identity deleted. It may be run again.
#
#   export HUB_CLUSTER_CONTEXT=…      # kubeconfig context of the hub
#   export MEMBER_CLUSTER=…           # name of the cluster in the fleet
#   export MEMBER_CLUSTER_CONTEXT=…   # kubeconfig context of the cluster; leave it out if the cluster is lost
#   deploy/join/leave-member-cluster.sh
#
# May be set besides:
#   KEEP_PLACED           true to leave on the cluster what was placed on it
#   HUB_ACCESS_NAMESPACE  as when joining (connect-to-fleet)
#   LEAVE_TIMEOUT         how long to wait for the cluster to leave (20m; the hub waits 15m for an agent that is silent)
#   KUBECTL, HELM         the programs (kubectl, helm)
set -euo pipefail

say() { printf '==> %s\n' "$*"; }
fail() { printf 'leave-member-cluster: %s\n' "$*" >&2; exit 1; }

missing=()
for name in HUB_CLUSTER_CONTEXT MEMBER_CLUSTER; do
  [[ -n "${!name:-}" ]] || missing+=("$name")
done
[[ ${#missing[@]} -eq 0 ]] || fail "not set: ${missing[*]}; the beginning of this file says what they are"
# check refuses a value that is not of the form of its kind: it would become a part of YAML, or of a value of helm.
check() {
  local name=$1 form=$2 meaning=$3
  [[ -z "${!name:-}" || "${!name}" =~ ^($form)$ ]] || fail "$name is '${!name}'; it must be $meaning"
}
label='[a-z0-9]([-a-z0-9]*[a-z0-9])?'
check MEMBER_CLUSTER "$label" "the name of a cluster: lower-case letters, digits and dashes, at most 50"
[[ ${#MEMBER_CLUSTER} -le 50 ]] || fail "MEMBER_CLUSTER is ${#MEMBER_CLUSTER} characters long; the name of a cluster has at most 50"
check HUB_ACCESS_NAMESPACE "$label" "the name of a namespace"

KUBECTL=${KUBECTL:-kubectl}
HELM=${HELM:-helm}
access=${HUB_ACCESS_NAMESPACE:-connect-to-fleet}
account="$MEMBER_CLUSTER-hub-cluster-access"
namespace=fleet-system
hub() { "$KUBECTL" --context "$HUB_CLUSTER_CONTEXT" "$@"; }

if [[ -n "$(hub get membercluster "$MEMBER_CLUSTER" --ignore-not-found -o name)" ]]; then
  # The agent of another cluster must not be uninstalled.
  known=$(hub get membercluster "$MEMBER_CLUSTER" -o jsonpath='{.metadata.annotations.fleetflow\.io/cluster-uid}')
  if [[ -n "${MEMBER_CLUSTER_CONTEXT:-}" && -n "$known" ]]; then
    uid=$("$KUBECTL" --context "$MEMBER_CLUSTER_CONTEXT" get namespace kube-system -o jsonpath='{.metadata.uid}') ||
      fail "the cluster ($MEMBER_CLUSTER_CONTEXT) cannot be asked; leave MEMBER_CLUSTER_CONTEXT out if it is lost"
    [[ "$known" == "$uid" ]] || fail "$MEMBER_CLUSTER_CONTEXT is not $MEMBER_CLUSTER but another cluster: nothing was changed"
  fi
  if [[ "${KEEP_PLACED:-}" == true ]]; then
    hub annotate membercluster "$MEMBER_CLUSTER" fleetflow.io/keep-placed-resources=true --overwrite
  fi
  say "Having $MEMBER_CLUSTER leave"
  hub delete membercluster "$MEMBER_CLUSTER" --wait=false
  if ! hub wait --for=delete "membercluster/$MEMBER_CLUSTER" --timeout="${LEAVE_TIMEOUT:-20m}"; then
    hub get membercluster "$MEMBER_CLUSTER" -o go-template='{{range .status.conditions}}{{.type}} is {{.status}}: {{.message}}{{"\n"}}{{end}}' >&2 || true
    fail "$MEMBER_CLUSTER has not left; its agent is needed until it has"
  fi
fi

if [[ -n "${MEMBER_CLUSTER_CONTEXT:-}" ]]; then
  say "Uninstalling the member agent from $MEMBER_CLUSTER_CONTEXT"
  "$HELM" uninstall member-agent --kube-context "$MEMBER_CLUSTER_CONTEXT" --namespace "$namespace" --ignore-not-found
  # The agent's rights went with it, so that it cannot give its lease back: the next one would wait until it runs out.
  "$KUBECTL" --context "$MEMBER_CLUSTER_CONTEXT" delete secret/hub-kubeconfig-secret lease/member-agent.fleetflow.io \
    --namespace "$namespace" --ignore-not-found
else
  say "MEMBER_CLUSTER_CONTEXT is not set: uninstall the release member-agent in $namespace of the cluster if it comes back"
fi

say "Deleting the identity of $MEMBER_CLUSTER on the hub"
hub delete secret "$account-token" --namespace "$access" --ignore-not-found
hub delete rolebinding,role,serviceaccount "$account" --namespace "$access" --ignore-not-found
say "$MEMBER_CLUSTER has left the fleet"
