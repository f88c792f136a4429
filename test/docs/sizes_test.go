package docs

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, path))
	require.NoError(t, err)
	return string(content)
}

// number reads a number such as 20,000.
func number(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	require.NoError(t, err)
	return value
}

// The page by which a hub is sized has what ends one first, by the formula of the page on scale.
func TestTheProductionPageSizesTheAPIServerByTheFormula(t *testing.T) {
	formula := regexp.MustCompile(`bytes\s+=\s+([\d.]+) GiB\s+\+\s+2 × B × (\d+) KiB`).FindStringSubmatch(read(t, "deploy/docs/scale.md"))
	require.NotNil(t, formula)
	base := number(t, formula[1])
	each := number(t, formula[2])
	rows := regexp.MustCompile(`(?m)^\| ([\d,]+) \| (\d+) placements on ([\d,]+) clusters \| ([\d.]+) GiB \|`).FindAllStringSubmatch(read(t, "deploy/docs/production.md"), -1)
	require.GreaterOrEqual(t, len(rows), 3)
	for _, row := range rows {
		bindings := number(t, row[1])
		assert.InDelta(t, number(t, row[2])*number(t, row[3]), bindings, 0, row[0])
		needs := base + 2*bindings*each/(1<<20)
		assert.InDelta(t, needs, number(t, row[4]), math.Max(0.05, needs*0.05), row[0])
	}
}

// The page on scale counts heartbeats as often as join and the kind have members report.
func TestTheScalePageCountsHeartbeatsAsTheyAre(t *testing.T) {
	joined := regexp.MustCompile(`(?m)^\s*defaultHeartbeat\s+(?:int32\s+)?= (\d+)$`).FindStringSubmatch(read(t, "cmd/kubectl-fleet/install/join.go"))
	require.NotNil(t, joined)
	kinds := regexp.MustCompile(`HeartbeatPeriodSeconds is [^\n]*\n\s*// \+kubebuilder:default=(\d+)`).FindStringSubmatch(read(t, "apis/cluster/v1beta1/membercluster_types.go"))
	require.NotNil(t, kinds)
	page := strings.Join(strings.Fields(read(t, "deploy/docs/scale.md")), " ")
	assert.Contains(t, page, "`kubectl fleet join` and the script set "+joined[1]+" s")
	assert.Contains(t, page, "a MemberCluster that does not say has "+kinds[1]+" s")
	writes := func(period string) string {
		count := int(math.Round(2 * 20000 / number(t, period)))
		if count < 1000 {
			return strconv.Itoa(count)
		}
		return fmt.Sprintf("%d,%03d", count/1000, count%1000)
	}
	assert.Contains(t, page, fmt.Sprintf("With 20,000 clusters %s s are %s writes a second and %s s are %s", joined[1], writes(joined[1]), kinds[1], writes(kinds[1])))
}
