package override_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/override"
)

func TestVariables(t *testing.T) {
	cluster := override.Cluster{Name: "member-1", Labels: map[string]string{
		"environment": "staging", "topology.kubernetes.io/zone": "east-1", "empty": "",
		"name-of-another": "${MEMBER-CLUSTER-NAME}", "odd": `"},{"` + "\n",
	}}
	cases := map[string]struct{ value, want string }{
		"the name of the cluster":                  {`"${MEMBER-CLUSTER-NAME}"`, `"member-1"`},
		"a label of the cluster":                   {`"${MEMBER-CLUSTER-LABEL-KEY-environment}"`, `"staging"`},
		"a label whose key has a slash":            {`"${MEMBER-CLUSTER-LABEL-KEY-topology.kubernetes.io/zone}"`, `"east-1"`},
		"a label without a value":                  {`"<${MEMBER-CLUSTER-LABEL-KEY-empty}>"`, `"<>"`},
		"a label at the end, as for Argo CD":       {`"manifests/guestbook/${MEMBER-CLUSTER-LABEL-KEY-environment}"`, `"manifests/guestbook/staging"`},
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
