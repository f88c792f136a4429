package propertyprovider

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server takes no half of a character.
func TestALongMessageOfAProviderIsCutBetweenCharacters(t *testing.T) {
	response := &PropertyCollectionResponse{Conditions: []metav1.Condition{{
		Type: "Ready", Reason: "Slow", Status: metav1.ConditionFalse, Message: "a" + strings.Repeat("ü", maxMessageLength),
	}}}
	require.NoError(t, validateResponse(response))
	message := response.Conditions[0].Message
	assert.True(t, utf8.ValidString(message))
	assert.LessOrEqual(t, len(message), maxMessageLength)
}
