package convert_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/convert"
)

var update = flag.Bool("update", false, "write what is made into the golden files")

// readInputs reads the manifests of a file.
func readInputs(t *testing.T, path string) []convert.Input {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	var inputs []convert.Input
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return inputs
		}
		require.NoError(t, err)
		if len(object.Object) > 0 {
			inputs = append(inputs, convert.Input{Source: filepath.Base(path), Object: object})
		}
	}
}

func defaults() convert.Options {
	return convert.Options{
		From: convert.FromAuto, RegionLabel: "topology.kubernetes.io/region", ZoneLabel: "topology.kubernetes.io/zone",
		ProviderLabel: "fleetflow.io/provider",
	}
}

// convertFile converts a file and prints what was made and noted.
func convertFile(t *testing.T, path string, o convert.Options) string {
	t.Helper()
	result, err := convert.Convert(readInputs(t, path), o)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	text := &strings.Builder{}
	require.NoError(t, result.PrintYAML(text))
	for _, note := range result.Notes {
		text.WriteString("#! " + note.String() + "\n")
	}
	return text.String()
}

// TestManifestsAreConverted converts every file in testdata. Run with -update to write the golden files, and read them.
func TestManifestsAreConverted(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".yaml"), func(t *testing.T) {
			got := convertFile(t, file, defaults())
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), got)
		})
	}
}

func TestTheOrderOfTheInputDoesNotMatter(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		inputs := readInputs(t, file)
		forward, err := convert.Convert(inputs, defaults())
		if err != nil {
			continue
		}
		reversed := slices.Clone(inputs)
		slices.Reverse(reversed)
		backward, err := convert.Convert(reversed, defaults())
		require.NoError(t, err, file)
		var one, other []map[string]any
		for i := range forward.Documents {
			one = append(one, forward.Documents[i].Object.Object)
			other = append(other, backward.Documents[i].Object.Object)
		}
		assert.Equal(t, one, other, file)
	}
}

func TestOptionsChangeHowPlacementsWrite(t *testing.T) {
	for sentence, test := range map[string]struct {
		file   string
		set    func(*convert.Options)
		has    string
		hasNot string
	}{
		"what would change is only reported": {"testdata/kubefed/clusters-named.yaml", func(o *convert.Options) { o.ReportDiff = true }, "type: ReportDiff", ""},
		"a safe rollout has batches":         {"testdata/kubefed/clusters-named.yaml", func(o *convert.Options) { o.SafeRollout = true }, "PickFixed", "100%"},
		"annotations of a template are kept": {"testdata/kubefed/template-metadata.yaml", func(o *convert.Options) { o.KeepTemplateMetadata = true }, "team: blue", ""},
		"candidates become a promise":        {"testdata/karmada/cluster-names.yaml", func(o *convert.Options) { o.PickFixed = true }, "placementType: PickFixed", "affinity"},
		"regions have another label":         {"testdata/karmada/field-selector.yaml", func(o *convert.Options) { o.RegionLabel = "example.com/region" }, "example.com/region", "topology.kubernetes.io/region"},
	} {
		t.Run(sentence, func(t *testing.T) {
			options := defaults()
			test.set(&options)
			got := convertFile(t, test.file, options)
			assert.Contains(t, got, test.has)
			if test.hasNot != "" {
				assert.NotContains(t, got, test.hasNot)
			}
		})
	}
}

func TestAManifestThatIsGivenAgainCountsOnce(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		inputs := readInputs(t, file)
		once, err := convert.Convert(inputs, defaults())
		if err != nil {
			continue
		}
		again, err := convert.Convert(slices.Concat(inputs, readInputs(t, file)), defaults())
		require.NoError(t, err, file)
		assert.Equal(t, once, again, file)
	}
	inputs := readInputs(t, "testdata/karmada/overlapping-selectors.yaml")
	other := inputs[0].Object.DeepCopy()
	other.SetLabels(map[string]string{"another": "content"})
	_, err = convert.Convert(append(inputs, convert.Input{Source: "other.yaml", Object: other}), defaults())
	assert.EqualError(t, err, "other.yaml: propagationpolicy/shop/all-and-one stands in overlapping-selectors.yaml with another content: leave one of them out")
}

func TestManifestsOfTheOtherSystemAreAnError(t *testing.T) {
	options := defaults()
	options.From = convert.FromKarmada
	assert.Equal(t, "error: clusters-named.yaml: federatednamespace/web/web is not of karmada: leave it out, or use --from auto\n",
		convertFile(t, "testdata/kubefed/clusters-named.yaml", options))
}

// TestTheAcceptanceExamplesOfKubeFed shows what a reader of the golden files may overlook.
func TestTheAcceptanceExamplesOfKubeFed(t *testing.T) {
	for id, test := range map[string]struct {
		file   string
		has    []string
		hasNot string
	}{
		"M1: an object goes to the clusters of its namespace only, with its override": {"m1", []string{"- c1\n", "value: 5", "c2"}, ""},
		"M2: an empty list of clusters places nowhere, whatever the selector says":    {"seed-clusters-empty", []string{"the object is placed nowhere"}, "foo: bar"},
		"M3: annotations of a template are left out, with one note":                   {"template-metadata", []string{"annotations and finalizers of a template never reached a member"}, "team: blue"},
		"M4: a preference becomes a rule of a placement of all clusters":              {"seed-rsp-limits", []string{"placementType: PickAll", "totalReplicas: 9", "minReplicas: 4", "maxReplicas: 6", "maxReplicas: 8", "weight: 2"}, "PickFixed"},
	} {
		t.Run(id, func(t *testing.T) {
			got := convertFile(t, "testdata/kubefed/"+test.file+".yaml", defaults())
			for _, text := range test.has {
				assert.Contains(t, got, text)
			}
			if test.hasNot != "" {
				assert.NotContains(t, got, test.hasNot)
			}
		})
	}
}
