{{- /* CEL, true if the sender of a request may pass the guard rails: the agents, the administrators of the cluster, the
parts of Kubernetes that have to do with objects of every kind, and the users and groups that the values name. Service
accounts of namespaces whose contents these policies guard may pass, because only those who pass can make use of one. */ -}}
{{- define "hub-agent.passes" -}}
request.userInfo.username == "system:serviceaccount:{{ include "hub-agent.namespace" . }}:{{ include "hub-agent.account" . }}" ||
{{- range .Values.guardRail.allowedUsers }}
request.userInfo.username == {{ . | toJson }} ||
{{- end }}
request.userInfo.username in ["system:apiserver", "system:kube-controller-manager"] ||
(has(request.userInfo.groups) && request.userInfo.groups.exists(g,
{{- range .Values.guardRail.allowedGroups }}
g == {{ . | toJson }} ||
{{- end }}
{{- if include "hub-agent.is-reserved" (list $ (include "hub-agent.namespace" .)) }}
g == "system:serviceaccounts:{{ include "hub-agent.namespace" . }}" ||
{{- end }}
g in ["system:masters", "kubeadm:cluster-admins"] || g.startsWith("system:serviceaccounts:kube-")))
{{- end }}

{{- /* CEL, true if the sender of a request is the account of this release or of another one that otherAgents names. Other
accounts of the namespace are no agents: those of members may be there. */ -}}
{{- define "hub-agent.is-agent" -}}
request.userInfo.username in ["system:serviceaccount:{{ include "hub-agent.namespace" . }}:{{ include "hub-agent.account" . }}"
{{- range .Values.otherAgents }}, {{ printf "system:serviceaccount:%s" . | toJson }}{{ end }}]
{{- end }}

{{- /* CEL, true if the sender of a request is a component of Kubernetes or of its provider: kubelets, the scheduler and add-ons
that run in the namespaces of Kubernetes. */ -}}
{{- define "hub-agent.is-component" -}}
request.userInfo.username.startsWith("system:") &&
!["system:serviceaccount:", "system:bootstrap:", "system:anonymous"].exists(p, request.userInfo.username.startsWith(p))
{{- end }}

{{- /* CEL, true if the user who sent a request about an object in a namespace is the agent of the member that it belongs to. */ -}}
{{- define "hub-agent.is-member" -}}
authorizer.group("cluster.kubernetes-fleet.io").resource("internalmemberclusters").subresource("status")
.namespace(request.namespace).check("update").allowed() &&
!authorizer.group("cluster.kubernetes-fleet.io").resource("internalmemberclusters").subresource("status")
.check("update").allowed()
{{- end }}

{{- /* CEL, the first half of a refusal: who wanted what. */ -}}
{{- define "hub-agent.refused" -}}
"user: '" + request.userInfo.username + "' in '[" +
(has(request.userInfo.groups) ? request.userInfo.groups.join(", ") : "") + "]' is not allowed to " +
request.operation + " resource " + (request.kind.group == "" ? "" : request.kind.group + "/") + request.kind.version +
", Kind=" + request.kind.kind + (has(request.subResource) ? "/" + request.subResource : "") + ": " +
(has(request.namespace) && request.resource.resource != "namespaces" ? request.namespace + "/" : "") +
(has(request.name) ? request.name : "") + "; "
{{- end }}

{{- /* What else can be done about a refusal. */ -}}
{{- define "hub-agent.or-allow" -}}
or have an administrator of the hub add the user or one of its groups to guardRail.allowedUsers or guardRail.allowedGroups in the values of the hub agent's chart
{{- end }}

{{- /* What the names of reserved namespaces begin with. Those of members and of Kubernetes are reserved in any case: service
accounts of the latter pass the guard rails. */ -}}
{{- define "hub-agent.reserved-prefixes" -}}
{{- $prefixes := .Values.guardRail.reservedPrefixes }}
{{- if not (has "fleet-" $prefixes) }}{{ $prefixes = append $prefixes "fleet-member-" }}{{ end }}
{{- append $prefixes "kube-" | uniq | toJson }}
{{- end }}

{{- /* The same in words: "fleet- or kube-". */ -}}
{{- define "hub-agent.reserved-words" -}}
{{- include "hub-agent.reserved-prefixes" . | fromJsonArray | join " or " }}
{{- end }}

{{- /* Not empty if a namespace is reserved: (list $ "its name"). */ -}}
{{- define "hub-agent.is-reserved" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}
{{- $others := without $root.Values.guardRail.foreignNamespaces (include "hub-agent.namespace" $root) }}
{{- range include "hub-agent.reserved-prefixes" $root | fromJsonArray }}
{{- if and (hasPrefix . $name) (not (has $name $others)) }}true{{ end }}
{{- end }}
{{- end }}

{{- /* CEL, true if a name is one of a reserved namespace: (list $ "the name as an expression"). A foreign namespace is not
reserved, unless it is the agent's own. */ -}}
{{- define "hub-agent.reserved" -}}
{{- $root := index . 0 }}{{ $name := index . 1 }}
{{- $others := without $root.Values.guardRail.foreignNamespaces (include "hub-agent.namespace" $root) }}
{{- include "hub-agent.reserved-prefixes" $root }}.exists(p, {{ $name }}.startsWith(p))
{{- if $others }} && !({{ $name }} in {{ $others | toJson }}){{ end }}
{{- end }}

{{- /* Namespaces where pods may run whatever enableWorkload says: without the agent's own no user could start the agent
again, without Temporal's no rollout would go on. */ -}}
{{- define "hub-agent.workload-namespaces" -}}
{{ include "hub-agent.namespace" . | toJson }}
{{- $host := index (splitList ":" .Values.temporal.address) 0 | splitList "." }}
{{- if or (eq (len $host) 2) (and (gt (len $host) 2) (eq (index $host 2) "svc")) }}, {{ index $host 1 | toJson }}{{ end }}
{{- range concat .Values.workloadNamespaces .Values.analysis.jobNamespaces }}, {{ . | toJson }}{{ end }}
{{- end }}

{{- /* CEL, true if no value lets pods run in a namespace: (list $ "the name as an expression"). */ -}}
{{- define "hub-agent.may-not-run" -}}
!({{ index . 1 }} in [{{ include "hub-agent.workload-namespaces" (index . 0) }}])
{{- end }}

{{- /* By which channel the sender of a request approves: RBAC lets the dashboard's account alone set this attribute of a user. */ -}}
{{- define "hub-agent.approval-channel" -}}
has(request.userInfo.extra) && "fleetflow.io/channel" in request.userInfo.extra && "Dashboard" in request.userInfo.extra["fleetflow.io/channel"] ? "Dashboard" : "Kubectl"
{{- end }}

{{- /* Matches the creation of runs, in every version. */ -}}
{{- define "hub-agent.creates-runs" -}}
matchPolicy: Equivalent
resourceRules:
  - apiGroups: [placement.kubernetes-fleet.io]
    apiVersions: ["*"]
    operations: [CREATE]
    resources: [clusterstagedupdateruns, stagedupdateruns]
{{- end }}
