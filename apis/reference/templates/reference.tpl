{{- /* The tool starts with gvList: the whole reference, from the types of all groups. */ -}}
{{- define "gvList" -}}
# Kinds of the API

Generated from the Go types in `apis` by `make generate`; the comments to change are theirs.

The kinds that KubeFleet has are in its API groups, those that it does not have in `fleetflow.io`. Every version of a
kind has the same fields, so it does not matter which one you read or write through; `v1beta1` is the stored one, and
`v1alpha1` that of `fleetflow.io`. Fields are optional unless it says *required*. A *Rule* quotes what the API server answers to those who
break it; … stands for something of the object. Every kind has `metadata` as well. What several kinds consist of is
described on the page of the first of them.

{{- $types := dict }}
{{- range . }}{{ range .SortedTypes }}{{ $_ := set $types .Name . }}{{ end }}{{ end }}
{{- /* Kinds that users write come before kinds that are written for them, for those only refer to the parts of these. */}}
{{- $chapters := list
  (list "Clusters" "Which clusters belong to the fleet." "MemberCluster")
  (list "Placement" "What is placed, and where."
    "ClusterResourcePlacement" "ResourcePlacement" "ClusterResourcePlacementStatus" "ClusterResourceEnvelope" "ResourceEnvelope" "PropagatedType" "RolloutHold" "RolloutWindow" "RolloutExemption" "MetricSource" "StageAnalysis" "ClusterStageAnalysisRun" "StageAnalysisRun")
  (list "Overrides" "How what is placed differs from cluster to cluster." "ClusterResourceOverride" "ResourceOverride")
  (list "Staged updates" "How a change goes through the fleet stage by stage."
    "ClusterStagedUpdateStrategy" "StagedUpdateStrategy" "ClusterStagedUpdateRun" "StagedUpdateRun"
    "ClusterApprovalRequest" "ApprovalRequest" "ClusterRehearsal" "Rehearsal" "AuditRecord" "AuditSink" "NotificationChannel" "NotificationRule")
  (list "Disruption" "What may be taken away from a cluster, and how much at once."
    "ClusterResourcePlacementEviction" "ClusterResourcePlacementDisruptionBudget")
  (list "Written by the fleet" "To look at when something is not as it should be. Only the agents need to write these."
    "InternalMemberCluster" "ClusterSchedulingPolicySnapshot" "SchedulingPolicySnapshot" "ClusterResourceSnapshot"
    "ResourceSnapshot" "ClusterResourceOverrideSnapshot" "ResourceOverrideSnapshot" "ClusterResourceBinding"
    "ResourceBinding" "Work" "AppliedWork" "MemberQuestion") }}
{{- $described := dict "Time" true "Duration" true "Quantity" true "IntOrString" true "JSON" true "RawExtension" true }}
{{- range $chapters }}

## {{ index . 0 }}

{{ index . 1 }}

| Kind | Short | Versions | Scope | |
|---|---|---|---|---|
{{- range slice . 2 }}{{ with get $types . }}{{ $resource := index .Markers "kubebuilder:resource" 0 }}
| [{{ .Name }}](#{{ lower .Name }}) | {{ template "codes" $resource.ShortName }} | {{ template "versions" . }} | {{ lower $resource.Scope }} | {{ template "prose" (regexReplaceAll "(?s)\\.\\s.*" .Doc ".") }} |
{{- end }}{{ end }}
{{- range slice . 2 }}
{{- template "kind" (dict "kind" (get $types .) "described" $described) }}
{{- end }}
{{- end }}
{{ end }}

{{- define "kind" }}
{{- $resource := index .kind.Markers "kubebuilder:resource" 0 }}
{{- $plural := lower .kind.Name | replace "strategy" "strategie" | replace "status" "statuse" | printf "%ss" }}
{{- if eq .kind.Name "StageAnalysis" }}{{ $plural = "stageanalyses" }}{{ end }}

### {{ .kind.Name }}

{{ template "prose" .kind.Doc }}

- apiVersion:{{ range index .kind.Markers "kubebuilder:metadata" }}{{ $comma := " " }}
{{- range index .Annotations 0 | trimPrefix "versions=" | splitList "," }}{{ $comma }}`{{ $.kind.GVK.Group }}/{{ . }}`{{ $comma = ", " }}{{ end }}{{ end }}
- scope: {{ lower $resource.Scope }}
- `kubectl get`: {{ template "codes" (prepend $resource.ShortName $plural) }}; with others of the fleet: {{ template "codes" $resource.Categories }}
- columns: {{ $comma := "" }}
{{- range index .kind.Markers "kubebuilder:printcolumn" }}{{ if not .Priority }}{{ $comma }}{{ .Name }}{{ $comma = ", " }}{{ end }}{{ end }}
{{- $comma = "; with `-o wide` also " }}
{{- range index .kind.Markers "kubebuilder:printcolumn" }}{{ if .Priority }}{{ $comma }}{{ .Name }}{{ $comma = ", " }}{{ end }}{{ end }}
{{- range index .kind.Markers "kubebuilder:validation:XValidation" }}
- {{ template "rule" . }}
{{- end }}

{{ template "fields" .kind }}
{{- template "parts" (dict "of" .kind "described" .described) }}
{{- end }}

{{- /* parts describes what a type consists of, unless it is described already. */ -}}
{{- define "parts" }}
{{- $described := .described }}
{{- range .of.Members }}
{{- $part := .Type }}
{{- range until 4 }}{{ with or $part.ValueType $part.UnderlyingType }}{{ $part = . }}{{ end }}{{ end }}
{{- if and $part.Fields (not (hasKey $described $part.Name)) }}
{{- $_ := set $described $part.Name true }}

#### {{ $part.Name }}
{{- with $part.Doc }}

{{ template "prose" . }}
{{- end }}
{{- if contains "fleetflow" $part.Package }} In {{ $first := true }}{{ range $owner := $part.SortedReferences }}{{ if ne $owner.Name "AuditSinkServer" }}{{ if not $first }}, {{ end }}{{ $first = false }}[{{ $owner.Name }}](#{{ lower $owner.Name }}){{ end }}{{ end }}.{{ end }}
{{- with index $part.Markers "kubebuilder:validation:XValidation" }}
{{ range . }}
- {{ template "rule" . }}
{{- end }}
{{- end }}
{{- if eq $part.Name "LabelSelector" }}

The API server refuses what the agents could not use, although the type of Kubernetes has no rules of its own:

- At most 64 entries of either field, whose keys and values have the form of labels.
- Rule: “a key of matchLabels must have the form of a label key, such as example.com/team”
- Rule: “operators In and NotIn need at least one value: add values”
- Rule: “operators Exists and DoesNotExist take no values: remove values”
{{- end }}

{{ template "fields" $part }}
{{- template "parts" (dict "of" $part "described" $described) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* fields tells of a type. Fields of the API are optional unless a marker says otherwise, those of Kubernetes the other way round. */ -}}
{{- define "fields" -}}
{{- $ours := contains "fleetflow" .Package -}}
| Field | Type | |
|---|---|---|
{{- range .Members }}
{{- $required := or (index .Markers "kubebuilder:validation:Required") (index .Markers "required") }}{{ if not $ours }}{{ $required = not (index .Markers "optional") }}{{ end }}
| `{{ .Name }}` | {{ template "type" (dict "of" .Type "number" 0) }}
{{- if .Default }}, default `{{ .Default }}`{{ else if $required }}, required{{ end }} | {{ template "prose" .Doc }}
{{- template "limits" . }} |
{{- end }}
{{- end }}

{{- /* type says in words what values a field takes; number is 0 for one of them, 1 for several. */ -}}
{{- define "type" }}
{{- $words := dict "string" (list "string" "strings") "bool" (list "boolean" "booleans")
  "int" (list "number" "numbers") "int32" (list "number" "numbers") "int64" (list "number" "numbers")
  "Duration" (list "string" "strings") "Time" (list "time" "times") "Quantity" (list "quantity" "quantities")
  "IntOrString" (list "number or string" "numbers or strings") "JSON" (list "any value" "any values")
  "RawExtension" (list "any object" "objects of any kind") "byte" (list "byte" "base64") }}
{{- $kind := toJson .of.Kind | trimAll "\"" }}
{{- if hasKey $words .of.Name }}
{{- if eq $kind "SLICE" }}{{ if eq .of.Name "byte" }}base64{{ else }}{{ index (list "list" "lists") .number }} of {{ index (get $words .of.Name) 1 }}{{ end }}
{{- else }}{{ index (get $words .of.Name) .number }}{{ end }}
{{- else if eq $kind "SLICE" }}{{ index (list "list" "lists") .number }} of {{ template "type" (dict "of" .of.UnderlyingType "number" 1) }}
{{- else if eq $kind "MAP" }}{{ index (list "map" "maps") .number }} to {{ template "type" (dict "of" .of.ValueType "number" 1) }}
{{- else if .of.Fields }}[{{ .of.Name }}](#{{ lower .of.Name }})
{{- else if .of.UnderlyingType }}{{ template "type" (dict "of" .of.UnderlyingType "number" .number) }}
{{- else }}{{ index (get $words "RawExtension") .number }}
{{- end }}
{{- end }}

{{- /* limits says in words what the API server refuses in a field; what it says of a type stands with the type. */ -}}
{{- define "limits" }}
{{- $values := list }}{{ if contains "fleetflow" .Type.Package }}{{ $values = .Type.EnumValues }}{{ end }}
{{- with index .Markers "kubebuilder:validation:Enum" }}<br>One of
{{- range $i, $value := index . 0 }}{{ if $i }},{{ end }} `{{ $value }}`
{{- range $values }}{{ if eq .Name $value }} ({{ template "prose" (regexReplaceAll "(?s)^\\S+ |\\.\\s.*|\\.$" .Doc "") }}){{ end }}{{ end }}
{{- end }}.
{{- end }}
{{- with index .Markers "kubebuilder:validation:Minimum" }}<br>At least {{ index . 0 }}.{{ end }}
{{- with index .Markers "kubebuilder:validation:Maximum" }}<br>At most {{ index . 0 }}.{{ end }}
{{- if or (index .Markers "kubebuilder:validation:MinLength") (index .Markers "kubebuilder:validation:MinItems") }}<br>Not empty.{{ end }}
{{- with index .Markers "kubebuilder:validation:MaxLength" }}<br>At most {{ index . 0 }} characters.{{ end }}
{{- with or (index .Markers "kubebuilder:validation:MaxItems") (index .Markers "kubebuilder:validation:MaxProperties") }}<br>At most {{ index . 0 }} {{ index . 0 | toString | atoi | plural "entry" "entries" }}.{{ end }}
{{- with index .Markers "kubebuilder:validation:items:MaxLength" }}<br>Each entry: At most {{ index . 0 }} characters.{{ end }}
{{- with index .Markers "kubebuilder:validation:Pattern" }}<br>Matches `{{ index . 0 | toString | replace "|" "\\|" }}`.{{ end }}
{{- with index .Markers "listMapKey" }}<br>One entry for each {{ template "codes" . }}.{{ end }}
{{- if not (deepEqual (index .Markers "kubebuilder:validation:XValidation") (index .Type.Markers "kubebuilder:validation:XValidation")) }}
{{- range index .Markers "kubebuilder:validation:XValidation" }}<br>{{ template "rule" . }}{{ end }}
{{- end }}
{{- end }}

{{- /* rule quotes the answer to what breaks a rule. An expression has … for what is not the same for every object. */ -}}
{{- define "rule" }}Rule: “
{{- template "escaped" (.Message | default (regexReplaceAll "\" \\+ .*? \\+ \"|^[^\"]+\"" .MessageExpression "…" | trimAll "\"")) }}”
{{- end }}

{{- define "versions" }}{{ range index .Markers "kubebuilder:metadata" }}{{ range .Annotations }}{{ trimPrefix "versions=" . | replace "," ", " }}{{ end }}{{ end }}{{ end }}

{{- define "codes" }}{{ range $i, $text := . }}{{ if $i }}, {{ end }}`{{ $text }}`{{ end }}{{ end }}

{{- define "escaped" }}{{ . | replace "|" "\\|" | replace "<" "&lt;" | replace ">" "&gt;" | replace "*" "\\*" | replace "[" "\\[" | replace "~" "\\~" }}{{ end }}

{{- define "prose" }}{{ template "escaped" (. | replace "\n" " ") }}{{ end }}
