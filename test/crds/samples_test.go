package crds

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func TestSamplesAreAdmitted(t *testing.T) { requireAdmitted(t, "../../deploy/samples", ".yaml") }

func TestConvertedManifestsAreAdmitted(t *testing.T) {
	requireAdmitted(t, "../../cmd/kubectl-fleet/convert/testdata", ".golden")
}

// requireAdmitted requires that the fleet's objects in the files of a folder are admitted, and that there are some.
func requireAdmitted(t *testing.T, folder, extension string) {
	t.Helper()
	crds := loadCRDs(t)
	kinds := map[string]*kind{}
	admitted := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != extension {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			object := struct {
				Kind string `json:"kind"`
			}{}
			if strings.HasPrefix(document, "error: ") {
				continue // what the conversion of a bad manifest says
			}
			require.NoError(t, yaml.Unmarshal([]byte(document), &object), path)
			if crds[object.Kind] == nil {
				continue
			}
			if kinds[object.Kind] == nil {
				kinds[object.Kind] = loadKind(t, object.Kind)
			}
			_, errs := kinds[object.Kind].admit(t, document, "")
			assert.Empty(t, errs, path)
			admitted++
		}
		return nil
	})
	require.NoError(t, err)
	assert.Positive(t, admitted)
}
