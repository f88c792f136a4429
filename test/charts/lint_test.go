package charts

import (
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
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
