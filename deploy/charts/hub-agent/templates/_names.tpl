{{- /* The namespace of everything that is in one: the release's, unless KubeFleet's value names another. */ -}}
{{- define "hub-agent.namespace" -}}
{{- if .Values.namespace }}{{ .Values.namespace }}{{ else }}{{ .Release.Namespace }}{{ end }}
{{- end }}

{{- /* What everything is called: the release, unless the values say otherwise. */ -}}
{{- define "hub-agent.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{- define "hub-agent.labels" -}}
app.kubernetes.io/name: hub-agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- range $key, $value := .Values.commonLabels }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "hub-agent.selector" -}}
app.kubernetes.io/name: hub-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
