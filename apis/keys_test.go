package apis_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kubeFleetKeys are the labels, annotations, finalizers and properties that KubeFleet's code or documentation has in its domain, and
// the name of a stage that looks like one.
var kubeFleetKeys = strings.Fields(`
	CRP-generation cluster-profile-cleanup cluster-resource-placement-status-cleanup crp-cleanup deleteStage envelope-configmap
	envelope-name envelope-namespace envelope-work is-fleet-resource is-latest-snapshot isLatestUpdateRunApproval
	last-applied-configuration member-name membercluster-finalizer next-resource-snapshot-candidate-detection-time node-count
	number-of-clusters number-of-enveloped-object number-of-resource-snapshots override-cleanup override-index parent-CRP
	parent-cluster-resource-override-snapshot-hash parent-placement-namespace parent-resource-binding parent-resource-override
	parent-resource-override-snapshot-hash parent-resource-snapshot-index parent-resource-snapshot-name policy-index
	previous-binding-state resource-hash resource-index rp-cleanup scheduler-cleanup scheduler-crb-cleanup spec-hash
	stagedupdaterun-finalizer subindex-of-resource-snapshot targetUpdateRun targetUpdatingStage targetupdaterun taskType
	work-cleanup`)

// keyInKubeFleetsDomain matches a key in code, be it written out or by the constant.
var keyInKubeFleetsDomain = regexp.MustCompile(`(?:[fF]leetPrefix \+ "|"kubernetes-fleet\.io/)([^"]+)"`)

func TestOnlyKeysOfKubeFleetAreInItsDomain(t *testing.T) {
	seen := map[string]bool{}
	for _, folder := range []string{".", "../activities", "../cmd", "../controllers", "../workflows", "../worker"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, match := range keyInKubeFleetsDomain.FindAllStringSubmatch(string(code), -1) {
				seen[match[1]] = true
				assert.True(t, slices.Contains(kubeFleetKeys, match[1]), "%s has the key kubernetes-fleet.io/%s, which KubeFleet does not know: take OwnPrefix", path, match[1])
			}
			return nil
		}))
	}
	for _, key := range kubeFleetKeys {
		assert.True(t, seen[key], "no code has the key kubernetes-fleet.io/%s of KubeFleet", key)
	}
}
