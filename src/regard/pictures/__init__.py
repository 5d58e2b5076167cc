"""Pictures of results: heat maps, curves and the HTML report; arrays and labels in, files out."""
