package crds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesOfAuditRecords(t *testing.T) {
	k := loadKind(t, "AuditRecord")
	recorded := func(kind, further string) string {
		return fmt.Sprintf(`apiVersion: fleetflow.io/v1alpha1
kind: AuditRecord
metadata: {name: r-1}
spec: {id: "%s", type: %s, time: "2026-11-21T21:52:14Z", sequence: 1, subjectRef: {apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, name: web-2, uid: "4711"}%s}
`, strings.Repeat("0", 64), kind, further)
	}
	whole := recorded("approval.given", ", comment: CAB-17")
	for name, tc := range map[string]struct {
		manifest, before, refusal string
	}{
		"a fact":                         {manifest: whole},
		"it may be written again":        {manifest: whole, before: whole},
		"it cannot be changed":           {manifest: recorded("approval.given", ", comment: forged"), before: whole, refusal: "spec: Forbidden: a record cannot be changed"},
		"a type is of something":         {manifest: recorded("given", ""), refusal: "spec.type in body should match"},
		"a digest is one":                {manifest: recorded("approval.given", ", previous: md5"), refusal: "spec.previous in body should match"},
		"further facts are bounded":      {manifest: recorded("approval.given", ", data: {clusters: "+strings.Repeat("x", 1025)+"}"), refusal: "may not be more than 1024"},
		"what people say to it, too":     {manifest: recorded("approval.given", ", comment: "+strings.Repeat("x", 8193)), refusal: "may not be more than 8192"},
		"who has done it may be unknown": {manifest: recorded("run.deleted", ", actor: {}")},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, tc.manifest, tc.before)
			if tc.refusal == "" {
				assert.Empty(t, texts(errs))
				return
			}
			assert.Contains(t, texts(errs), tc.refusal)
		})
	}
}
