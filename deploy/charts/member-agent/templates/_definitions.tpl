{{- /* Refuses to upgrade a release that has the definitions of the fleet's kinds among its objects, as those of KubeFleet's charts
have: Helm deletes what a release has and the chart has not, every object of these kinds goes with its definition, and everything
that such an object owns, which on a member is all that is placed. Helm spares what is annotated, on the cluster, to be kept.
Clients that render without a cluster see no definition here; definitions-kept.yaml is for them. */ -}}
{{- define "member-agent.refuse-release-with-definitions" -}}
{{- if .Release.IsUpgrade }}
{{- $lost := list }}
{{- range dig "items" list (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "") }}
{{- $said := .metadata.annotations | default dict }}
{{- $ours := and (eq (get $said "meta.helm.sh/release-name") $.Release.Name) (eq (get $said "meta.helm.sh/release-namespace") $.Release.Namespace) }}
{{- if and $ours (ne (get $said "helm.sh/resource-policy") "keep") (regexMatch "[.](kubernetes-fleet[.]io|kubefleet[.]dev|fleetflow[.]io|multicluster[.]x-k8s[.]io)$" .metadata.name) }}{{ $lost = append $lost .metadata.name }}{{ end }}
{{- end }}
{{- with $lost | sortAlpha }}
{{- fail (printf "release %s has %d definition(s) of the fleet's kinds among its objects, as KubeFleet's charts have them: Helm would delete them, with every object of these kinds and everything that is placed. Keep them first: kubectl annotate crd --overwrite %s helm.sh/resource-policy=keep" $.Release.Name (len .) (join " " .)) }}
{{- end }}
{{- end }}
{{- end }}
