// Package samples checks that the samples are what the Go types say; test/crds checks them against the CRDs.
package samples

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const folder = "../../deploy/samples"

// patches are samples that are not objects but patches of an object.
var patches = map[string]func() runtime.Object{
	"staged-update/5-approval.yaml": func() runtime.Object { return &placementv1beta1.ClusterApprovalRequest{} },
}

// version matches a further version of a kind of the fleet.
var version = regexp.MustCompile(`(?m)^(apiVersion: (?:cluster|placement)\.kubernetes-fleet\.io)/v1(?:alpha1)?$`)

// foreign matches objects whose types are not ours to know: those of Argo CD, Flux, KubeFed and Karmada, and definitions of kinds.
var foreign = regexp.MustCompile(`(?m)^apiVersion: (argoproj|kustomize\.toolkit\.fluxcd|apiextensions\.k8s|[a-z]+\.kubefed|[a-z]+\.karmada)\.io/`)

// stored returns a sample in the version it is stored in: all versions of a kind have one schema, and one Go type.
func stored(document []byte) []byte {
	return version.ReplaceAll(document, []byte("$1/v1beta1"))
}

// files returns the samples by their path below the folder.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		found[name], err = os.ReadFile(path)
		return err
	})
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}

func TestSamplesHaveOnlyFieldsThatExist(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, clusterv1beta1.AddToScheme(scheme))
	require.NoError(t, placementv1beta1.AddToScheme(scheme))
	require.NoError(t, fleetflowv1alpha1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for name, text := range files(t) {
		t.Run(name, func(t *testing.T) {
			if patched := patches[name]; patched != nil {
				require.NoError(t, yaml.UnmarshalStrict(text, patched()))
				return
			}
			for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
				if foreign.Match(document) {
					assert.NoError(t, yaml.UnmarshalStrict(document, &map[string]any{}))
					continue
				}
				_, _, err := decoder.Decode(stored(document), nil, nil)
				assert.NoError(t, err)
			}
		})
	}
}

func TestSamplesSayWhatTheyAreFor(t *testing.T) {
	for name, text := range files(t) {
		first, _, _ := strings.Cut(string(text), "\n")
		assert.Regexp(t, `^# \w.{10,}`, first, name)
	}
}
