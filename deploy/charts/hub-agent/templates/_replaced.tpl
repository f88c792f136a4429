{{- /* Values of before the first release that have other names now, or no effect: to take them would leave users without the right, or the Temporal
without the place, that they ask for. */ -}}
{{- define "hub-agent.replaced" -}}
{{- if hasKey .Values.guardRail "whitelistedUsers" }}
{{- fail "guardRail.whitelistedUsers has another name: write guardRail.allowedUsers" }}
{{- end }}
{{- if hasKey .Values.guardRail "whitelistedGroups" }}
{{- fail "guardRail.whitelistedGroups has another name: write guardRail.allowedGroups" }}
{{- end }}
{{- if hasKey .Values.temporal.bundled "enabled" }}
{{- fail "temporal.bundled.enabled is gone: leave it out, or set temporal.mode=Bundled, which is the mode where there is no temporal.address" }}
{{- end }}
{{- if hasKey .Values.temporal.bundled "persistence" }}
{{- fail "temporal.bundled.persistence is gone: leave it out. The bundled Temporal begins empty, and loses no progress by that; to keep histories, use temporal.mode=External" }}
{{- end }}
{{- if hasKey .Values.networkPolicy "temporalFrom" }}
{{- fail "networkPolicy.temporalFrom is gone: leave it out. No other Pod reaches the bundled Temporal; for clients of Temporal, use temporal.mode=External" }}
{{- end }}
{{- end }}
