package charts

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kubeFleetsMember are the values of KubeFleet's chart for members that have another meaning here, or none.
func kubeFleetsMember() values {
	return values{
		"config": values{
			"provider": "secret", "identityKey": "identity-key-path", "identityCert": "identity-cert-path", "CABundle": "ca-bundle-path",
		},
		"azure": values{"clientid": "none"}, "useCAAuth": false, "tlsClientInsecure": true, "propertyProvider": "none", "region": "",
		"enablePprof": true, "pprofPort": 6065, "hubPprofPort": 6066,
		"refreshtoken": values{"repository": "registry.example.com/refresh-token", "tag": "v1", "pullPolicy": "Always"},
		"secret":       values{"name": "hub-kubeconfig-secret", "namespace": "default"},
	}
}

func TestValuesOfKubeFleetsMembersAreTaken(t *testing.T) {
	all := must(t, "member-agent", kubeFleetsMember())
	assert.Subset(t, args(t, all, release), []string{"--hub-token-secret=default/hub-kubeconfig-secret", "--tls-insecure=true", "--property-provider=none"})
}

func TestValuesOfKubeFleetThatCannotBeSayWhatCan(t *testing.T) {
	for sentence, test := range map[string]struct {
		values values
		want   string
	}{
		"a certificate for the hub": {values{"useCAAuth": true}, "put its token into the Secret that config.hubTokenSecret names, and leave useCAAuth out"},
		"a side-car of a cloud":     {values{"config": values{"provider": "azure"}}, "renew it there"},
	} {
		t.Run(sentence, func(t *testing.T) {
			all := kubeFleetsMember()
			merge(all, test.values)
			_, err := with(t, "member-agent", all)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// What has nothing to switch would be read as a promise: "enableV1Alpha1APIs" that there are such APIs.
func TestValuesWithoutEffectAreTakenAndNotShown(t *testing.T) {
	content, err := os.ReadFile(path.Join(root, "deploy", "charts", "member-agent", "values.yaml"))
	require.NoError(t, err)
	for _, name := range []string{"refreshtoken", "enableV1Alpha1APIs", "enableV1Beta1APIs", "hubPprofPort", "region", "azure", "useCAAuth"} {
		assert.NotContains(t, string(content), "\n"+name+":")
	}
}
