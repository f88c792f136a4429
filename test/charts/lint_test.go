package charts

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// What helm lint says, which is this.
func TestHelmHasNothingToSayAboutTheCharts(t *testing.T) {
	for name, values := range required() {
		t.Run(name, func(t *testing.T) {
			linter := lint.RunAll(path.Join(root, "deploy", "charts", name), values, namespace)
			assert.DirExists(t, linter.ChartDir)
			for _, message := range linter.Messages {
				assert.LessOrEqual(t, message.Severity, support.InfoSev, "%s: %v", message.Path, message.Err)
			}
		})
	}
}

// Artifact Hub shows these as they are.
func TestChartsTellArtifactHubOfKindsAndPagesThatExist(t *testing.T) {
	for name := range required() {
		t.Run(name, func(t *testing.T) {
			chart, err := loader.Load(path.Join(root, "deploy", "charts", name))
			require.NoError(t, err)
			served := map[string][]string{}
			for _, file := range chart.CRDObjects() {
				crd := struct {
					Metadata struct{ Name string }
					Spec     struct{ Versions []struct{ Name string } }
				}{}
				require.NoError(t, yaml.Unmarshal(file.File.Data, &crd))
				for _, version := range crd.Spec.Versions {
					served[crd.Metadata.Name] = append(served[crd.Metadata.Name], version.Name)
				}
			}
			var kinds []struct{ Kind, Version, Name, DisplayName, Description string }
			require.NoError(t, yaml.UnmarshalStrict([]byte(chart.Metadata.Annotations["artifacthub.io/crds"]), &kinds))
			require.Equal(t, len(kinds) == 0, len(served) == 0)
			assert.Len(t, kinds, len(served), "all of them")
			for _, kind := range kinds {
				assert.Contains(t, served[kind.Name], kind.Version, kind.Name)
			}
			var named []struct{ Name, Image string }
			require.NoError(t, yaml.UnmarshalStrict([]byte(chart.Metadata.Annotations["artifacthub.io/images"]), &named))
			var listed []string
			for _, image := range named {
				listed = append(listed, image.Image)
			}
			var given values
			if name == "hub-agent" {
				given = values{"temporal": values{"address": ""}} // with the bundled Temporal
			}
			rendered := imagesOf(must(t, name, given))
			slices.Sort(rendered)
			assert.ElementsMatch(t, slices.Compact(rendered), listed)
			icon, ours := strings.CutPrefix(chart.Metadata.Icon, "https://raw.githubusercontent.com/fleetflow/fleetflow/main/")
			assert.True(t, ours, chart.Metadata.Icon)
			assert.FileExists(t, path.Join(root, icon))
			var links []struct{ Name, URL string }
			require.NoError(t, yaml.UnmarshalStrict([]byte(chart.Metadata.Annotations["artifacthub.io/links"]), &links))
			for _, link := range links {
				file, ours := strings.CutPrefix(link.URL, chart.Metadata.Home+"/blob/main/")
				assert.True(t, ours, link.URL)
				assert.FileExists(t, path.Join(root, file))
			}
		})
	}
}
