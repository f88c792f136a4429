package fence

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPatch(t *testing.T) {
	for sentence, test := range map[string]struct {
		operations []Op
		want       string
	}{
		"the uid is always pinned":           {want: `[{"op":"test","path":"/metadata/uid","value":"u"}]`},
		"a test for nothing keeps its null":  {[]Op{Test("/spec/x", nil)}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/spec/x","value":null}]`},
		"an empty value is a value":          {[]Op{Replace("/spec/x", "")}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"replace","path":"/spec/x","value":""}]`},
		"a removal has no value":             {[]Op{Remove("/spec/x")}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"remove","path":"/spec/x"}]`},
		"an empty record clears the records": {[]Op{Untrack()}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"add","path":"/metadata/managedFields","value":[{}]}]`},
		"keys are escaped":                   {[]Op{Add(LabelPath("a/b~c"), "v")}, `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"add","path":"/metadata/labels/a~1b~0c","value":"v"}]`},
	} {
		t.Run(sentence, func(t *testing.T) {
			patch, err := Patch("u", test.operations...)
			require.NoError(t, err)
			data, err := patch.Data(nil)
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(data))
		})
	}
}

func TestAnnotate(t *testing.T) {
	assert.Equal(t, []Op{Test("/metadata/annotations", nil), Add("/metadata/annotations", map[string]string{"k": "v"})}, Annotate(nil, "k", "v"), "there are none yet")
	assert.Equal(t, []Op{Test("/metadata/annotations/k", nil), Add("/metadata/annotations/k", "v")}, Annotate(map[string]string{"x": "y"}, "k", "v"), "it is new")
	assert.Equal(t, []Op{Test("/metadata/annotations/k", "old"), Add("/metadata/annotations/k", "v")}, Annotate(map[string]string{"k": "old"}, "k", "v"), "it has a value")
}
