{{- /* CEL, true if whoever sent the request may pass the guard rails: the agents, the administrators of the cluster,
Kubernetes itself and whom the values name. User names that begin with "system:" belong to the components of
Kubernetes. Service accounts of namespaces whose contents these policies guard may pass, because nobody else can make
use of one. */ -}}
{{- define "hub-agent.passes" -}}
request.userInfo.username == "system:serviceaccount:{{ include "hub-agent.namespace" . }}:{{ .Release.Name }}" ||
{{- range .Values.guardRail.whitelistedUsers }}
request.userInfo.username == {{ . | toJson }} ||
{{- end }}
(request.userInfo.username.startsWith("system:") &&
!["system:serviceaccount:", "system:bootstrap:", "system:anonymous"].exists(p, request.userInfo.username.startsWith(p))) ||
(has(request.userInfo.groups) && request.userInfo.groups.exists(g,
{{- range .Values.guardRail.whitelistedGroups }}
g == {{ . | toJson }} ||
{{- end }}
{{- if or (hasPrefix "fleet-" (include "hub-agent.namespace" .)) (hasPrefix "kube-" (include "hub-agent.namespace" .)) }}
g == "system:serviceaccounts:{{ include "hub-agent.namespace" . }}" ||
{{- end }}
g in ["system:masters", "kubeadm:cluster-admins"] || g.startsWith("system:serviceaccounts:kube-")))
{{- end }}

{{- /* CEL, true if whoever sent a request about an object in a namespace is the agent of the member that it belongs to. */ -}}
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
{{- define "hub-agent.whitelist" -}}
or have an administrator of the hub add the user or one of its groups to guardRail.whitelistedUsers or guardRail.whitelistedGroups in the values of the hub agent's chart
{{- end }}

{{- /* CEL, true if a name is one of a reserved namespace. */ -}}
{{- define "hub-agent.reserved" -}}
["fleet-", "kube-"].exists(p, {{ . }}.startsWith(p))
{{- end }}

{{- /* Namespaces where pods may run whatever enableWorkload says: without the agent's own nobody could start the agent
again, without Temporal's no rollout would go on. */ -}}
{{- define "hub-agent.workload-namespaces" -}}
{{ include "hub-agent.namespace" . | toJson }}
{{- $host := index (splitList ":" .Values.temporal.address) 0 | splitList "." }}
{{- if or (eq (len $host) 2) (and (gt (len $host) 2) (eq (index $host 2) "svc")) }}, {{ index $host 1 | toJson }}{{ end }}
{{- range .Values.workloadNamespaces }}, {{ . | toJson }}{{ end }}
{{- end }}
