package override_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/override"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestVariables(t *testing.T) {
	cluster := override.Cluster{Name: "member-1", Labels: map[string]string{
		"environment": "staging", "topology.kubernetes.io/zone": "east-1", "empty": "",
		"name-of-another": "${MEMBER-CLUSTER-NAME}", "odd": `"},{"` + "\n",
	}, Values: map[string]string{"value.fleetflow.io/tier": "gold"}, Properties: map[string]string{"k8s.io/k8s-version": "v1.36.3"}}
	cases := map[string]struct{ value, want string }{
		"the name of the cluster":                  {`"${MEMBER-CLUSTER-NAME}"`, `"member-1"`},
		"a label of the cluster":                   {`"${MEMBER-CLUSTER-LABEL-KEY-environment}"`, `"staging"`},
		"a label whose key has a slash":            {`"${MEMBER-CLUSTER-LABEL-KEY-topology.kubernetes.io/zone}"`, `"east-1"`},
		"a label without a value":                  {`"<${MEMBER-CLUSTER-LABEL-KEY-empty}>"`, `"<>"`},
		"a label at the end, as for Argo CD":       {`"manifests/guestbook/${MEMBER-CLUSTER-LABEL-KEY-environment}"`, `"manifests/guestbook/staging"`},
		"an annotation that is there for it":       {`"${MEMBER-CLUSTER-ANNOTATION-KEY-value.fleetflow.io/tier}"`, `"gold"`},
		"a property":                               {`"v ${MEMBER-CLUSTER-PROPERTY-KEY-k8s.io/k8s-version}"`, `"v v1.36.3"`},
		"an annotation that nothing closes":        {`"${MEMBER-CLUSTER-ANNOTATION-KEY-value.fleetflow.io/tier"`, `"${MEMBER-CLUSTER-ANNOTATION-KEY-value.fleetflow.io/tier"`},
		"several in a string":                      {`"a ${MEMBER-CLUSTER-NAME}${MEMBER-CLUSTER-NAME} b ${MEMBER-CLUSTER-LABEL-KEY-environment} c"`, `"a member-1member-1 b staging c"`},
		"deep inside":                              {`{"a": [1, {"b": ["${MEMBER-CLUSTER-NAME}", null, true]}]}`, `{"a": [1, {"b": ["member-1", null, true]}]}`},
		"as the key of a field":                    {`{"${MEMBER-CLUSTER-NAME}": "a"}`, `{"member-1": "a"}`},
		"written with escapes":                     {`"\u0024{MEMBER-CLUSTER-NAME\u007d"`, `"member-1"`},
		"a text that needs escapes":                {`"${MEMBER-CLUSTER-LABEL-KEY-odd}"`, `"\"},{\"\n"`},
		"what comes in is not replaced again":      {`"${MEMBER-CLUSTER-LABEL-KEY-name-of-another}"`, `"${MEMBER-CLUSTER-NAME}"`},
		"what comes in does not make up a new one": {`"${MEMBER-CLUSTER-LABEL-KEY-empty}${MEMBER-CLUSTER-${MEMBER-CLUSTER-LABEL-KEY-empty}NAME}"`, `"${MEMBER-CLUSTER-NAME}"`},
		"small letters are text":                   {`"${member-cluster-name}"`, `"${member-cluster-name}"`},
		"mixed letters are text":                   {`"${MEMBER-CLUSTER-Name} ${MEMBER-CLUSTER-LABEL-key-environment}"`, `"${MEMBER-CLUSTER-Name} ${MEMBER-CLUSTER-LABEL-key-environment}"`},
		"unknown ones are text":                    {`"${HOME} ${MEMBER-CLUSTER-ID} $(MEMBER-CLUSTER-NAME)"`, `"${HOME} ${MEMBER-CLUSTER-ID} $(MEMBER-CLUSTER-NAME)"`},
		"without braces it is text":                {`"$MEMBER-CLUSTER-NAME"`, `"$MEMBER-CLUSTER-NAME"`},
		"one that nothing closes is text":          {`"${MEMBER-CLUSTER-LABEL-KEY-environment"`, `"${MEMBER-CLUSTER-LABEL-KEY-environment"`},
		"a name that nothing closes is text":       {`"${MEMBER-CLUSTER-NAME"`, `"${MEMBER-CLUSTER-NAME"`},
		"after text that looks alike":              {`"${MEMBER-CLUSTER-${MEMBER-CLUSTER-NAME}"`, `"${MEMBER-CLUSTER-member-1"`},
		"numbers stay numbers":                     {`{"a": 9007199254740993, "b": 1.50, "c": "${MEMBER-CLUSTER-NAME}"}`, `{"a": 9007199254740993, "b": 1.50, "c": "member-1"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := op("add", "/data/value", "")
			o.Value.Raw = []byte(tc.value)
			result, err := forRole(patch(op("add", "/data", "{}"), o)).apply(t, cluster, reader)
			require.NoError(t, err)
			var object struct {
				Data struct{ Value json.RawMessage }
			}
			require.NoError(t, json.Unmarshal(result.Manifest, &object))
			assert.Equal(t, semantics(t, []byte(tc.want)), semantics(t, object.Data.Value))
		})
	}
}

func TestVariablesThatCannotBeReplaced(t *testing.T) {
	cluster := override.Cluster{Name: "member-1", Labels: map[string]string{"Environment": "prod", "twin": "member-1"}}
	cases := map[string]struct {
		value string
		want  []string
	}{
		"a label that the cluster does not have": {`"x ${MEMBER-CLUSTER-LABEL-KEY-region}"`, []string{`label key "region" not found on cluster "member-1"`, "label the MemberCluster", "clusterSelector"}},
		"the case of a label's key matters":      {`"${MEMBER-CLUSTER-LABEL-KEY-environment}"`, []string{`label key "environment" not found`}},
		"an annotation that it does not have":    {`"${MEMBER-CLUSTER-ANNOTATION-KEY-secret}"`, []string{`annotation "secret" not found on cluster "member-1"`, "only annotations that begin with value.fleetflow.io/ can be asked for"}},
		"a property that it does not report":     {`"${MEMBER-CLUSTER-PROPERTY-KEY-x}"`, []string{`property "x" not found on cluster "member-1"`, "do not report it"}},
		"no key":                                 {`"${MEMBER-CLUSTER-LABEL-KEY-}"`, []string{`label key "" not found`}},
		"one inside another":                     {`"${MEMBER-CLUSTER-LABEL-KEY-${MEMBER-CLUSTER-NAME}}"`, []string{`label key "${MEMBER-CLUSTER-NAME" not found`}},
		"two fields that become one":             {`{"${MEMBER-CLUSTER-NAME}": 1, "${MEMBER-CLUSTER-LABEL-KEY-twin}": 2}`, []string{`two keys of an object are "member-1" on cluster "member-1"`}},
		"a missing label deep inside":            {`{"a": [{"b": "${MEMBER-CLUSTER-LABEL-KEY-region}"}]}`, []string{`label key "region"`}},
		"a missing label in a key":               {`{"${MEMBER-CLUSTER-LABEL-KEY-region}": 1}`, []string{`label key "region"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := forRole(patch(op("add", "/data", tc.value)))
			_, err := o.apply(t, cluster, reader)
			require.Error(t, err)
			for _, want := range append(tc.want, "/data", "overrideRules[0].jsonPatchOverrides[0]", "ClusterRole secret-reader") {
				assert.Contains(t, err.Error(), want)
			}
			_, err = o.apply(t, cluster, config)
			assert.NoError(t, err, "objects that the rule is not for are not affected")
		})
	}
}

func TestVariablesInPathsAreText(t *testing.T) {
	result, err := forRole(patch(op("add", "/${MEMBER-CLUSTER-NAME}", "x"))).apply(t, override.Cluster{Name: "member-1"}, reader)
	require.NoError(t, err)
	assert.Contains(t, string(result.Manifest), `"${MEMBER-CLUSTER-NAME}":"x"`)
}

// Who may write an override asks for no other annotations, and for nothing that each report changes.
func TestWhatVariablesMayAskFor(t *testing.T) {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member-1", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{
		"value.fleetflow.io/tier": "gold", "kubectl.kubernetes.io/last-applied-configuration": "{}", "fleetflow.io/location-labels": "{}",
	}}}
	member.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		"fleetflow.io/region": {Value: "eu-1"}, clusterv1beta1.LargestPodProperty("cpu"): {Value: "3"}, clusterv1beta1.AgentTokenEndProperty: {Value: "today"},
		clusterv1beta1.ClusterEntryPointProperty: {Value: "https://10.0.0.1"}, clusterv1beta1.ClusterCertificateAuthorityProperty: {Value: "CA"},
	}
	assert.Equal(t, override.Cluster{
		Name: "member-1", Labels: map[string]string{"a": "b"}, Values: map[string]string{"value.fleetflow.io/tier": "gold"}, Properties: map[string]string{"fleetflow.io/region": "eu-1"},
	}, override.ClusterOf(member))
}
