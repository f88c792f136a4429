package elastic

import "encoding/json"

// The answers of Elasticsearch are never given.
type (
	Acknowledgement       struct{ Acknowledged bool }
	ClusterHealthResponse struct{ Status string }
	Response              struct{ Body json.RawMessage }
	GetResult             struct {
		Id     string
		Index  string
		Source json.RawMessage
		Found  bool
	}
	CatIndicesResponse []struct {
		Index     string
		DocsCount int
	}
	IndicesGetSettingsResponse struct{ Settings map[string]any }
	SearchResult               struct {
		Hits         *SearchHits
		Aggregations map[string]json.RawMessage
	}
	SearchHits struct{ Hits []*SearchHit }
	SearchHit  struct {
		Id     string
		Source json.RawMessage
		Sort   []any
	}
	// Error is what Elasticsearch refuses with.
	Error struct {
		Status  int
		Details *ErrorDetails
	}
	ErrorDetails struct {
		Type, Reason string
		RootCause    []*ErrorDetails
	}
)

// Error returns nothing.
func (*Error) Error() string { return "" }
