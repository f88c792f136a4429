{{- define "hub-agent.labels" -}}
app.kubernetes.io/name: hub-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "hub-agent.selector" -}}
app.kubernetes.io/name: hub-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
