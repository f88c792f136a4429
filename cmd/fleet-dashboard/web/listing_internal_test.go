package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
)

func TestFoldersAreNotListed(t *testing.T) {
	served := withoutListings(http.FileServerFS(fstest.MapFS{"a.css": {Data: []byte("x")}, "in/b.css": {Data: []byte("x")}}))
	for path, want := range map[string]int{"": 404, "/": 404, "in/": 404, "./": 404, "a.css": 200, "in/b.css": 200, "none": 404} {
		answer := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.URL.Path = path
		served.ServeHTTP(answer, request)
		assert.Equal(t, want, answer.Code, path)
	}
}
