package command

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

const federatedConfigMap = `apiVersion: types.kubefed.io/v1beta1
kind: FederatedConfigMap
metadata: {name: settings, namespace: web}
spec:
  template: {data: {a: "1"}}
  placement: {clusters: [{name: member-1}]}
  unheardOf: 1
`

func TestConvertReadsFilesFoldersAndTheStandardInput(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(folder, "deep"), 0o700))
	file := filepath.Join(folder, "deep", "settings.yaml")
	require.NoError(t, os.WriteFile(file, []byte(federatedConfigMap), 0o600))
	for sentence, test := range map[string]struct {
		args   []string
		source string
	}{
		"a file":             {[]string{"-f", file}, file},
		"a folder":           {[]string{"-f", folder, "-R"}, file},
		"the standard input": {[]string{"-f", "-"}, "standard input"},
	} {
		t.Run(sentence, func(t *testing.T) {
			streams, in, out, errOut := genericiooptions.NewTestIOStreams()
			in.WriteString(federatedConfigMap)
			cmd := NewConvert(nil, streams)
			cmd.SetArgs(test.args)
			require.NoError(t, cmd.Execute())
			assert.Contains(t, out.String(), "kind: ResourcePlacement\n")
			assert.Contains(t, errOut.String(), test.source+": federatedconfigmap/web/settings: spec.unheardOf: unsupported: there is no counterpart\n")
		})
	}
}

func TestConvertIsStrictIfAsked(t *testing.T) {
	streams, in, out, _ := genericiooptions.NewTestIOStreams()
	in.WriteString(federatedConfigMap)
	cmd := NewConvert(nil, streams)
	cmd.SilenceUsage = true
	cmd.SilenceErrors = true
	cmd.SetArgs([]string{"-f", "-", "--strict", "-o", "json"})
	err := cmd.Execute()
	exit := &cli.Exit{}
	require.True(t, errors.As(err, &exit))
	assert.Equal(t, 2, exit.Code)
	assert.Equal(t, "1 fields or objects have no counterpart: see the notes marked unsupported", exit.Error())
	assert.Contains(t, out.String(), `"kind": "List"`, "what was made is printed all the same")
}

func TestConvertRefusesWhatItCannotDo(t *testing.T) {
	for message, args := range map[string][]string{
		"kubectl fleet convert needs manifests: --filename names files or folders, - is the standard input":            nil,
		`--from "ocm" is not known: use auto, kubefed or karmada`:                                                      {"-f", "-", "--from", "ocm"},
		"reading manifests: https://example.com/web.yaml is no file: fetch it and give it on the standard input, as -": {"-f", "https://example.com/web.yaml"},
		`reading manifests: the path "/no/such/file.yaml" does not exist`:                                              {"-f", "/no/such/file.yaml"},
		`--output "table" is not a format of manifests: use yaml or json`:                                              {"-f", "-", "-o", "table"},
	} {
		streams, _, _, _ := genericiooptions.NewTestIOStreams()
		cmd := NewConvert(nil, streams)
		cmd.SilenceUsage = true
		cmd.SilenceErrors = true
		cmd.SetArgs(args)
		assert.EqualError(t, cmd.Execute(), message)
	}
}
