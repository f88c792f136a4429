{{- /* Bundled or External: what temporal.mode says, or else whether there is an address. What does not go with Bundled is refused. */ -}}
{{- define "hub-agent.temporal-mode" -}}
{{- $mode := .Values.temporal.mode | default (empty .Values.temporal.address | ternary "Bundled" "External") }}
{{- if eq $mode "External" }}
{{- if not .Values.temporal.address }}
{{- fail "temporal.address is required with temporal.mode=External: host:port of the Temporal frontend. Without both, a Temporal comes with the agent" }}
{{- end }}
{{- if and .Values.temporal.workerVersions (or .Values.workers.enabled (ne .Values.role "all")) }}
{{- fail "temporal.workerVersions has tasks go to the workers of the agent that leads: leave out workers.enabled and role, or temporal.workerVersions" }}
{{- end }}
{{- else }}
{{- if .Values.temporal.workerVersions }}
{{- fail "temporal.workerVersions is for an external Temporal, and temporal.mode is Bundled, where no two versions share a server: leave it out" }}
{{- end }}
{{- if .Values.temporal.address }}
{{- fail "temporal.address is that of an external Temporal, and temporal.mode is Bundled: leave one of the two out. To move from External to Bundled, set temporal.address to the empty string" }}
{{- end }}
{{- if or .Values.workers.enabled (ne .Values.role "all") }}
{{- fail "workers.enabled and role need temporal.mode=External: the bundled Temporal is reached by the agent beside it only, which runs controllers and workers" }}
{{- end }}
{{- if or .Values.temporal.tls.enabled .Values.temporal.tls.secretName .Values.temporal.apiKey.secretName }}
{{- fail "temporal.tls and temporal.apiKey are for an external Temporal, and temporal.mode is Bundled: leave them out, or name temporal.address" }}
{{- end }}
{{- if eq .Values.temporal.approvals "verified" }}
{{- fail "temporal.approvals=verified takes no approval with temporal.mode=Bundled, whose Temporal names no senders: use off, or any for all who may forward ports to the Pod" }}
{{- end }}
{{- end }}
{{- $mode }}
{{- end }}

{{- /* host:port of the Temporal frontend. */ -}}
{{- define "hub-agent.temporal-address" -}}
{{- eq (include "hub-agent.temporal-mode" .) "Bundled" | ternary "127.0.0.1:7233" .Values.temporal.address }}
{{- end }}

{{- /* Temporal beside the agent, as a sidecar that Kubernetes ends after the agent. It listens on the Pod's loopback only, so its
probe is a command. It has no startup probe: the agent starts without it. */ -}}
{{- define "hub-agent.temporal-sidecar" -}}
{{- with .Values.temporal.bundled -}}
name: temporal
restartPolicy: Always
image: {{ include "hub-agent.image" (dict "root" $ "image" .image "tag" ($.Values.image.tag | default $.Chart.AppVersion)) | quote }}
imagePullPolicy: {{ .image.pullPolicy }}
args:
  - --data=/data
  - --namespace={{ $.Values.temporal.namespace }}
  - --ui={{ .ui }}
livenessProbe:
  exec: {command: [/program, health, --namespace={{ $.Values.temporal.namespace }}]}
  periodSeconds: 30
  timeoutSeconds: 10
securityContext: {{- toYaml $.Values.containerSecurityContext | nindent 2 }}
resources: {{- toYaml .resources | nindent 2 }}
env:
  # Below the limit of memory, so that Go collects what is not in use before the kernel ends the process.
  - {name: GOMEMLIMIT, value: {{ .memoryTarget }}}
  # Collects twice as often as Go would: with 1,000 rollouts under way the server takes about a quarter less memory.
  - {name: GOGC, value: "50"}
  # Where the program looks for settings of its own; there are none.
  - {name: HOME, value: /tmp}
volumeMounts:
  - {name: temporal-data, mountPath: /data}
  - {name: temporal-tmp, mountPath: /tmp}
{{- end }}
{{- end }}
