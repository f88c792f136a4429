{{- /* The namespace of everything that is in one: the release's, unless KubeFleet's value names another. */ -}}
{{- define "member-agent.namespace" -}}
{{- if .Values.namespace }}{{ .Values.namespace }}{{ else }}{{ .Release.Namespace }}{{ end }}
{{- end }}

{{- /* What everything is called: the release, unless the values say otherwise. */ -}}
{{- define "member-agent.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{- define "member-agent.labels" -}}
app.kubernetes.io/name: member-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- range $key, $value := .Values.commonLabels }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "member-agent.selector" -}}
app.kubernetes.io/name: member-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
