package elastic

// What a search would look for is forgotten.
type (
	Query            interface{ Source() (any, error) }
	Sorter           interface{ Source() (any, error) }
	Aggregation      interface{ Source() (any, error) }
	nothing          struct{}
	SortByDoc        struct{ nothing }
	BoolQuery        struct{ nothing }
	RangeQuery       struct{ nothing }
	FieldSort        struct{ nothing }
	TermsAggregation struct{ nothing }
	SearchSource     struct{ nothing }
)

func (nothing) Source() (any, error) { return nil, ErrAbsent }

func NewBoolQuery() *BoolQuery               { return &BoolQuery{} }
func NewRangeQuery(string) *RangeQuery       { return &RangeQuery{} }
func NewExistsQuery(string) Query            { return nothing{} }
func NewMatchQuery(string, any) Query        { return nothing{} }
func NewPrefixQuery(string, string) Query    { return nothing{} }
func NewTermQuery(string, any) Query         { return nothing{} }
func NewTermsQuery(string, ...any) Query     { return nothing{} }
func NewFieldSort(string) *FieldSort         { return &FieldSort{} }
func NewTermsAggregation() *TermsAggregation { return &TermsAggregation{} }
func NewSearchSource() *SearchSource         { return &SearchSource{} }

func (q *BoolQuery) Filter(...Query) *BoolQuery              { return q }
func (q *BoolQuery) Must(...Query) *BoolQuery                { return q }
func (q *BoolQuery) MustNot(...Query) *BoolQuery             { return q }
func (q *BoolQuery) Should(...Query) *BoolQuery              { return q }
func (q *BoolQuery) MinimumShouldMatch(string) *BoolQuery    { return q }
func (q *BoolQuery) MinimumNumberShouldMatch(int) *BoolQuery { return q }

func (q *RangeQuery) Gt(any) *RangeQuery  { return q }
func (q *RangeQuery) Gte(any) *RangeQuery { return q }
func (q *RangeQuery) Lt(any) *RangeQuery  { return q }
func (q *RangeQuery) Lte(any) *RangeQuery { return q }

func (s *FieldSort) Asc() *FieldSort        { return s }
func (s *FieldSort) Desc() *FieldSort       { return s }
func (s *FieldSort) Missing(any) *FieldSort { return s }

func (a *TermsAggregation) Field(string) *TermsAggregation                       { return a }
func (a *TermsAggregation) SubAggregation(string, Aggregation) *TermsAggregation { return a }

func (s *SearchSource) Query(Query) *SearchSource                     { return s }
func (s *SearchSource) SortBy(...Sorter) *SearchSource                { return s }
func (s *SearchSource) Size(int) *SearchSource                        { return s }
func (s *SearchSource) SearchAfter(...any) *SearchSource              { return s }
func (s *SearchSource) TrackTotalHits(any) *SearchSource              { return s }
func (s *SearchSource) Aggregation(string, Aggregation) *SearchSource { return s }
