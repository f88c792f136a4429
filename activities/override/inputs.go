package override

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"regexp"
	"slices"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// labelKeys finds the variables that stand for labels of a cluster.
var labelKeys = regexp.MustCompile(regexp.QuoteMeta(labelVariable) + `([^}]*)}`)

// variableLabels returns the labels that the rules of an override take values from, sorted.
func (s *spec) variableLabels() []string {
	var keys []string
	for _, rule := range s.rules {
		for _, operation := range rule.JSONPatchOverrides {
			for _, found := range labelKeys.FindAllSubmatch(operation.Value.Raw, -1) {
				keys = append(keys, string(found[1]))
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Inputs returns a fingerprint of what decides, beside the names in Applicable, what an object
// looks like on a cluster: the content of the overrides and the labels that variables
// stand for. It is empty if no override applies.
func (m *Matcher) Inputs(cluster Cluster) string {
	var sum hash.Hash
	for i := range m.overrides {
		override := &m.overrides[i]
		if !override.hasRuleFor(cluster) {
			continue
		}
		if sum == nil {
			sum = sha256.New()
		}
		// Writing to a hash never fails.
		_, _ = fmt.Fprintf(sum, "%s %x\n", override.source, override.content)
		for _, key := range override.labels {
			value, has := cluster.Labels[key]
			_, _ = fmt.Fprintf(sum, "%q %q %t\n", key, value, has)
		}
	}
	if sum == nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))[:fingerprintLength]
}

// IsSnapshotOf reports whether a snapshot shows what an override with a hash says. That of another author states another hash
// of the same content.
func IsSnapshotOf(snapshot placementv1beta1.OverrideSnapshotObject, hash []byte) (bool, error) {
	if bytes.Equal(snapshot.GetOverrideHash(), hash) {
		return true, nil
	}
	content, err := Hash(snapshot)
	return bytes.Equal(content, hash), err
}

// Hash returns what tells overrides apart: the SHA-256 sum of their specs, in hexadecimal digits, as KubeFleet states it. The API server
// stores the values of patches in one way, however they were written.
func Hash(override interface{ GetOverrideSpec() any }) ([]byte, error) {
	written, err := json.Marshal(override.GetOverrideSpec())
	if err != nil {
		return nil, fmt.Errorf("hashing an override: %w", err)
	}
	sum := sha256.Sum256(written)
	return hex.AppendEncode(nil, sum[:]), nil
}
