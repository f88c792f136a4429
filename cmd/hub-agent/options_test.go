package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/selection"
)

func TestFlagsThatKeepSomethingFromBeingPlaced(t *testing.T) {
	o, err := parseOptions(nil, io.Discard, nothing)
	require.NoError(t, err)
	assert.True(t, o.filter.Empty())
	assert.Equal(t, selection.Pace{}, o.pace, "every change is taken up at once")
	assert.Equal(t, selection.Ceiling{Objects: 20_000, Bytes: 64 << 20}, o.ceiling)

	o, err = parseOptions([]string{"--skipped-propagating-apis=apps;v1/Secret", "--skipped-propagating-namespaces=a,b;c",
		"--resource-snapshot-creation-minimum-interval=30s", "--resource-changes-collection-duration=15s",
		"--resource-snapshot-bytes-per-second=2Mi"}, io.Discard, nothing)
	require.NoError(t, err)
	assert.False(t, o.filter.Empty())
	for _, name := range []string{"a", "b", "c"} {
		assert.True(t, o.filter.SkipsNamespace(name), name)
	}
	assert.Equal(t, selection.Pace{MinimumInterval: 30 * time.Second, Collection: 15 * time.Second, BytesPerSecond: 2 << 20}, o.pace)
}

func TestWhatTheAgentRefusesToStartWith(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"both lists of APIs":             {[]string{"--allowed-propagating-apis=v1", "--skipped-propagating-apis=apps"}, "--skipped-propagating-apis and --allowed-propagating-apis exclude each other"},
		"an API that cannot be read":     {[]string{"--allowed-propagating-apis=apps/v1/"}, `--allowed-propagating-apis: "apps/v1/" cannot be read`},
		"a reserved namespace":           {[]string{"--placeable-namespaces=kube-system"}, `--placeable-namespaces names "kube-system"`},
		"no name of a namespace":         {[]string{"--skipped-propagating-namespaces=a b"}, `--skipped-propagating-namespaces: "a b" is no name of a namespace`},
		"an interval below zero":         {[]string{"--resource-snapshot-creation-minimum-interval=-1s"}, "must not be negative"},
		"a collection below zero":        {[]string{"--resource-changes-collection-duration=-1s"}, "must not be negative"},
		"bytes below zero":               {[]string{"--resource-snapshot-bytes-per-second=-1"}, "must not be negative"},
		"objects below zero":             {[]string{"--selection-max-objects=-1"}, "must not be negative"},
		"a size that is none":            {[]string{"--selection-max-bytes=much"}, "selection-max-bytes"},
		"a lifetime below zero":          {[]string{"--executed-eviction-ttl=-1s"}, "must not be negative"},
		"a wait below zero":              {[]string{"--force-delete-wait-time=-1s"}, "must not be negative"},
		"decisions without a namespace":  {[]string{"--enable-placement-decisions", "--cluster-profile-namespace="}, "--cluster-profile-namespace"},
		"profiles without a namespace":   {[]string{"--enable-cluster-inventory-apis", "--cluster-profile-namespace="}, "--cluster-profile-namespace"},
		"words that no release has":      {[]string{"--vocabulary=klingon"}, `--vocabulary is "klingon"; it must be documentation or kubefleet`},
		"a role that does not exist":     {[]string{"--role=leader"}, "--role"},
		"a format of the log unheard of": {[]string{"--log-format=xml"}, "--log-format"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := parseOptions(test.args, io.Discard, nothing)
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// nothing is an environment without variables.
func nothing(string) (string, bool) { return "", false }

func TestTheVersionNeedsNothingElse(t *testing.T) {
	o, err := parseOptions([]string{"--version", "--role=leader"}, io.Discard, nothing)
	require.NoError(t, err)
	assert.True(t, o.Version)
}
