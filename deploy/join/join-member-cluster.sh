#!/usr/bin/env bash
# Joins a cluster to a fleet: gives it an identity on the hub, invites it, installs the member agent on it, and waits
# until it has joined. It may be run again, to revoke a token for instance: the account is made anew, so that all tokens it had
# are worth nothing at once; the rest stays as it is, the values of the agent's chart too.
#
#   export HUB_CLUSTER_CONTEXT=…      # kubeconfig context of the hub
#   export HUB_CLUSTER_ADDRESS=…      # address of the hub's API server, as the member sees it: https://host:port
#   export MEMBER_CLUSTER=…           # name of the cluster in the fleet
#   export MEMBER_CLUSTER_CONTEXT=…   # kubeconfig context of the cluster that joins
#   deploy/join/join-member-cluster.sh [flags for helm, such as --set logVerbosity=1]
#
# May be set besides:
#   HUB_CLUSTER_CA        file with the CA of the hub's API server; else that of the hub's context
#   HUB_ACCESS_NAMESPACE  namespace on the hub of the member's service account (connect-to-fleet)
#   HEARTBEAT_PERIOD      how often the member reports, in seconds (15)
#   REGISTRY, MEMBER_AGENT_IMAGE, FLEET_VERSION   the image: $REGISTRY/$MEMBER_AGENT_IMAGE:$FLEET_VERSION
#   TOKEN_DURATION        how long a token holds (24h); the agent renews it half-way
#   MOVE                  true to give the name to this cluster, though another cluster has it, or this one has another name
#   JOIN_TIMEOUT          how long to wait for the member to join (5m)
#   KUBECTL, HELM         the programs (kubectl, helm)
set -euo pipefail

say() { printf '==> %s\n' "$*"; }
fail() { printf 'join-member-cluster: %s\n' "$*" >&2; exit 1; }

missing=()
for name in HUB_CLUSTER_CONTEXT HUB_CLUSTER_ADDRESS MEMBER_CLUSTER MEMBER_CLUSTER_CONTEXT; do
  [[ -n "${!name:-}" ]] || missing+=("$name")
done
[[ ${#missing[@]} -eq 0 ]] || fail "not set: ${missing[*]}; the beginning of this file says what they are"
[[ "$HUB_CLUSTER_ADDRESS" == https://* ]] || fail "HUB_CLUSTER_ADDRESS is '$HUB_CLUSTER_ADDRESS'; it must be an address such as https://hub.example.com:6443"

# check refuses a value that is not of the form of its kind: it would become a part of YAML, or of a value of helm.
check() {
  local name=$1 form=$2 meaning=$3
  [[ -z "${!name:-}" || "${!name}" =~ ^($form)$ ]] || fail "$name is '${!name}'; it must be $meaning"
}
label='[a-z0-9]([-a-z0-9]*[a-z0-9])?'
check MEMBER_CLUSTER "$label" "the name of a cluster: lower-case letters, digits and dashes, at most 50"
[[ ${#MEMBER_CLUSTER} -le 50 ]] || fail "MEMBER_CLUSTER is ${#MEMBER_CLUSTER} characters long; the name of a cluster has at most 50"
check HUB_ACCESS_NAMESPACE "$label" "the name of a namespace"
check HUB_CLUSTER_ADDRESS 'https://[A-Za-z0-9.:/_%-]+|https://\[[0-9a-fA-F:.]+\][A-Za-z0-9.:/_%-]*' "an address such as https://hub.example.com:6443"
check HEARTBEAT_PERIOD '[0-9]+' "a number of seconds"
check TOKEN_DURATION '([0-9]+[hms])+' "a duration such as 24h or 90m"
image='[A-Za-z0-9._:/-]+'
check REGISTRY "$image" "the address of a registry, such as ghcr.io/fleetflow"
check MEMBER_AGENT_IMAGE "$image" "the name of an image"
check FLEET_VERSION '[A-Za-z0-9._-]+' "the tag of an image"
check MOVE 'true|false' "true or false"

KUBECTL=${KUBECTL:-kubectl}
HELM=${HELM:-helm}
for program in "$KUBECTL" "$HELM"; do
  command -v "$program" >/dev/null || fail "$program is not installed"
done
chart="$(cd "$(dirname "${BASH_SOURCE[0]}")/../charts/member-agent" && pwd)"
access=${HUB_ACCESS_NAMESPACE:-connect-to-fleet}
account="$MEMBER_CLUSTER-hub-cluster-access"
namespace=fleet-system
hub() { "$KUBECTL" --context "$HUB_CLUSTER_CONTEXT" "$@"; }
member() { "$KUBECTL" --context "$MEMBER_CLUSTER_CONTEXT" "$@"; }

# authority prints the CA of the hub in base64; nothing if its context has none.
authority() {
  if [[ -n "${HUB_CLUSTER_CA:-}" ]]; then
    base64 <"$HUB_CLUSTER_CA" | tr -d '\n'
    return
  fi
  local data file
  data=$(hub config view --raw --minify --flatten -o jsonpath='{.clusters[0].cluster.certificate-authority-data}')
  file=$(hub config view --raw --minify -o jsonpath='{.clusters[0].cluster.certificate-authority}')
  if [[ -n "$data" ]]; then
    printf '%s' "$data"
  elif [[ -n "$file" ]]; then
    base64 <"$file" | tr -d '\n'
  fi
}

hub get crd memberclusters.cluster.kubernetes-fleet.io >/dev/null ||
  fail "the hub ($HUB_CLUSTER_CONTEXT) cannot be asked, or has no MemberClusters: install the chart hub-agent first"
if [[ -n "$(hub get membercluster "$MEMBER_CLUSTER" --ignore-not-found -o jsonpath='{.metadata.deletionTimestamp}')" ]]; then
  fail "member cluster $MEMBER_CLUSTER is leaving the fleet; run this again once it is gone"
fi
# Two clusters of one name would undo each other's work.
uid=$(member get namespace kube-system -o jsonpath='{.metadata.uid}') || fail "the cluster ($MEMBER_CLUSTER_CONTEXT) cannot be asked"
known=$(hub get membercluster "$MEMBER_CLUSTER" --ignore-not-found -o jsonpath='{.metadata.annotations.fleetflow\.io/cluster-uid}')
if [[ -n "$known" && "$known" != "$uid" && "${MOVE:-}" != true ]]; then
  fail "member cluster $MEMBER_CLUSTER is another cluster: that one has uid $known, this one $uid. Choose another name, or have that" \
    "one leave first; if this cluster is to have the name from now on, such as one that was built anew, set MOVE=true"
fi
# One cluster under two names would leave the first without a word.
members=$(hub get memberclusters -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.metadata.annotations.fleetflow\.io/cluster-uid}{"\n"}{end}')
moved=()
while read -r other its; do
  [[ "$its" == "$uid" && "$other" != "$MEMBER_CLUSTER" ]] || continue
  [[ "${MOVE:-}" == true ]] ||
    fail "$MEMBER_CLUSTER_CONTEXT is the cluster of member cluster $other, which has the same uid $uid: it would become $MEMBER_CLUSTER," \
      "and $other would have no cluster. Check MEMBER_CLUSTER_CONTEXT, or have $other leave first; if the cluster is to be $MEMBER_CLUSTER from now on, set MOVE=true"
  moved+=("$other")
done <<<"$members"

# A release of KubeFleet's has the definition of what is placed among its objects: Helm would delete it, and everything placed with it.
owned='{{range .items}}{{$name := .metadata.name}}{{with .metadata.annotations}}{{if index . "meta.helm.sh/release-name"}}{{if ne (printf "%v" (index . "helm.sh/resource-policy")) "keep"}}{{$name}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}'
definitions=$(member get customresourcedefinitions -o go-template="$owned") || fail "the definitions of kinds on $MEMBER_CLUSTER_CONTEXT cannot be read"
definitions=$(grep -E '[.](kubernetes-fleet[.]io|kubefleet[.]dev|fleetflow[.]io)$|^clusterprofiles[.]multicluster' <<<"$definitions" | tr '\n' ' ' || true)
[[ -z "$definitions" ]] || fail "a release of Helm on $MEMBER_CLUSTER_CONTEXT has definitions of the fleet's kinds among its objects, as KubeFleet's chart has" \
  "them: the installation would delete them, and everything that is placed with them; nothing was changed. Keep them first:" \
  "$KUBECTL --context $MEMBER_CLUSTER_CONTEXT annotate crd --overwrite ${definitions}helm.sh/resource-policy=keep; and do not uninstall" \
  "that release before the agent of fleetflow has taken its place"

for other in ${moved[@]+"${moved[@]}"}; do # nothing is refused from here on
  hub annotate membercluster "$other" fleetflow.io/cluster-uid-
done
say "Giving $MEMBER_CLUSTER an identity on the hub: service account $access/$account"
hub get namespace "$access" >/dev/null 2>&1 || hub create namespace "$access"
# Made anew, so that no token of an earlier account counts; $account-token is one without an end, of an earlier version.
hub delete rolebinding,role,serviceaccount "$account" --namespace "$access" --ignore-not-found
hub delete secret "$account-token" --namespace "$access" --ignore-not-found
# The account may renew its own token, and nothing else.
hub create -f - <<END
apiVersion: v1
kind: ServiceAccount
metadata:
  name: $account
  namespace: $access
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: $account
  namespace: $access
rules:
  - apiGroups: [""]
    resources: [serviceaccounts/token]
    resourceNames: [$account]
    verbs: [create]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: $account
  namespace: $access
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: $account
subjects:
  - kind: ServiceAccount
    name: $account
    namespace: $access
END
secret=$(hub create token "$account" --namespace "$access" --duration "${TOKEN_DURATION:-24h}")

say "Inviting $MEMBER_CLUSTER"
heartbeat=${HEARTBEAT_PERIOD:-$(hub get membercluster "$MEMBER_CLUSTER" --ignore-not-found -o jsonpath='{.spec.heartbeatPeriodSeconds}')}
hub apply -f - <<END
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata:
  name: $MEMBER_CLUSTER
  annotations:
    fleetflow.io/cluster-uid: "$uid"
spec:
  identity:
    name: $account
    kind: ServiceAccount
    namespace: $access
    apiGroup: ""
  heartbeatPeriodSeconds: ${heartbeat:-15}
END

say "Installing the member agent on $MEMBER_CLUSTER_CONTEXT"
member get namespace "$namespace" >/dev/null 2>&1 || {
  member create namespace "$namespace"
  member label namespace "$namespace" pod-security.kubernetes.io/enforce=restricted
}
# By standard input, so that the token is in no list of processes.
printf '%s' "$secret" |
  member create secret generic hub-kubeconfig-secret --namespace "$namespace" --from-file=token=/dev/stdin --dry-run=client -o yaml |
  member apply -f -
values=(--set-string "config.hubURL=$HUB_CLUSTER_ADDRESS" --set-string "config.memberClusterName=$MEMBER_CLUSTER")
ca=$(authority)
values+=(--set-string "config.hubCA=$ca") # also without one: that of an earlier hub does not stay
[[ -z "${REGISTRY:-}" ]] || values+=(--set-string "image.repository=$REGISTRY/${MEMBER_AGENT_IMAGE:-member-agent}")
[[ -z "${FLEET_VERSION:-}" ]] || values+=(--set-string "image.tag=$FLEET_VERSION")
"$HELM" upgrade --install member-agent "$chart" --reset-then-reuse-values --kube-context "$MEMBER_CLUSTER_CONTEXT" --namespace "$namespace" "${values[@]}" "$@"

say "Waiting for $MEMBER_CLUSTER to join"
if ! hub wait --for=condition=Joined "membercluster/$MEMBER_CLUSTER" --timeout="${JOIN_TIMEOUT:-5m}"; then
  hub get membercluster "$MEMBER_CLUSTER" -o go-template='{{range .status.conditions}}{{.type}} is {{.status}}: {{.message}}{{"\n"}}{{end}}' >&2 || true
  fail "$MEMBER_CLUSTER has not joined. The log of its agent says more:" \
    "$KUBECTL --context $MEMBER_CLUSTER_CONTEXT --namespace $namespace logs deployment/member-agent"
fi
hub get membercluster "$MEMBER_CLUSTER"
