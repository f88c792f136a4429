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

func TestSamplesAreAdmitted(t *testing.T) {
	crds, kinds, admitted := loadCRDs(t), map[string]*kind{}, 0
	err := filepath.WalkDir("../../deploy/samples", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
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
