{{- /* What the charts hub-agent, member-agent and fleet-dashboard say alike of their Pods. A test compares the three files. */ -}}

{{- /* The registry of an image is that of its repository, unless all images come from one: (dict "root" $ "image" … "tag" …). An image
is named by its digest, which names the same bytes for ever, or else by its tag. */ -}}
{{- define "hub-agent.image" -}}
{{- $repository := .image.repository }}
{{- with .root.Values.global.imageRegistry }}
{{- $repository = printf "%s/%s" (trimSuffix "/" .) (regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $repository "") }}
{{- end }}
{{- $repository }}{{ if .image.digest }}@{{ .image.digest }}{{ else }}:{{ or .image.tag .tag }}{{ end }}
{{- end }}

{{- /* The service account of the Pods: the chart's own, or one that is there already. */ -}}
{{- define "hub-agent.account" -}}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) }}
{{- fail "serviceAccount.name is required where serviceAccount.create is false: the service account that is there already" }}
{{- end }}
{{- .Values.serviceAccount.name | default (include "hub-agent.fullname" .) }}
{{- end }}

{{- /* Fields of a Deployment. */ -}}
{{- define "hub-agent.deployment" -}}
revisionHistoryLimit: {{ .Values.revisionHistoryLimit }}
{{- with .Values.updateStrategy }}
strategy: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Fields of a Pod, but for its containers and volumes; sidecars in the context are among its init containers. */ -}}
{{- define "hub-agent.pod" -}}
serviceAccountName: {{ include "hub-agent.account" . }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with concat .Values.initContainers (get .Values "extraInitContainers" | default list) (get . "sidecars" | default list) }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.hostAliases }}
hostAliases: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.dnsPolicy }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
