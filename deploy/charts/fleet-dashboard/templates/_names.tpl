{{- /* What everything is called: the release, unless the values say otherwise. */ -}}
{{- define "fleet-dashboard.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{- define "fleet-dashboard.labels" -}}
app.kubernetes.io/name: fleet-dashboard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- range $key, $value := .Values.commonLabels }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "fleet-dashboard.selector" -}}
app.kubernetes.io/name: fleet-dashboard
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "fleet-dashboard.keys" -}}
{{ .Values.session.existingSecret | default (printf "%s-session" (include "fleet-dashboard.fullname" .)) }}
{{- end }}

{{- /* Whether the dashboard acts as users by constrained impersonation, which Kubernetes 1.36 has on by default. */ -}}
{{- define "fleet-dashboard.constrained" -}}
{{- if or (eq .Values.impersonation "constrained") (and (eq .Values.impersonation "auto") (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version)) }}true{{ end }}
{{- end }}

{{- define "fleet-dashboard.host" -}}
{{ index (splitList ":" (urlParse .Values.url).host) 0 }}
{{- end }}
