{{- /* Values of KubeFleet's chart that ask for what is not here are refused, with what to set instead. Those that have
nothing to switch here are in values.schema.json only, so that KubeFleet's commands and values files work. */ -}}
{{- define "member-agent.kubefleet" -}}
{{- if get .Values "useCAAuth" }}
{{- fail "useCAAuth, config.identityKey and config.identityCert: the agent shows the hub a token, not a certificate. Make a service account on the hub, put its token into the Secret that config.hubTokenSecret names, and leave useCAAuth out" }}
{{- end }}
{{- if get .Values "useKubeconfig" }}
{{- fail "useKubeconfig and config.hubKubeconfigSecretName: the agent makes its connection of config.hubURL and a token. Make a service account on the hub, put its token into the Secret that config.hubTokenSecret names, and leave useKubeconfig out" }}
{{- end }}
{{- if eq (get .Values.config "provider") "azure" }}
{{- fail "config.provider=azure: no side-car fetches tokens here. Put the token into the Secret that config.hubTokenSecret names, and renew it there: the agent takes it up without a restart; leave config.provider out" }}
{{- end }}
{{- end }}
