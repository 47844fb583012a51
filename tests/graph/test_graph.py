import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from silograph import Graph, GraphError, read_graph, write_graph

names = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=8).filter(
    lambda name: name.strip() == name and name.isprintable()
)


@st.composite
def graphs(draw) -> Graph:
    labels = draw(st.lists(names, min_size=2, max_size=8, unique=True))
    pairs = [(i, j) for i in range(len(labels)) for j in range(i)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True))
    weights = draw(st.lists(st.floats(1e-300, 1e300), min_size=len(chosen), max_size=len(chosen)))
    return Graph.from_edges(labels, [i for i, _ in chosen], [j for _, j in chosen], weights)


@pytest.mark.parametrize("suffix", [".graphml", ".csv", ".npz"])
@given(graph=graphs())
def test_a_graph_is_equal_after_a_round_trip(tmp_path_factory, suffix, graph):
    path = tmp_path_factory.mktemp("graph") / f"graph{suffix}"
    write_graph(graph, path)
    back = read_graph(path)
    assert back == graph
    assert back.reordered(graph.names).names == graph.names
    assert [path] == list(path.parent.iterdir())


@given(graph=graphs(), seed=st.integers(0, 1000))
def test_equality_is_blind_to_the_order_of_nodes_and_sees_a_changed_weight(graph, seed):
    order = np.random.default_rng(seed).permutation(graph.names).tolist()
    other = graph.reordered(order)
    assert other == graph
    if graph.n_edges:
        changed = Graph(graph.names, graph.rows, graph.cols, graph.weights * 1.5)
        assert changed != graph


def triangle() -> Graph:
    return Graph.from_edges(["a", "b", "c", "lonely"], [0, 2, 1], [1, 0, 2], [1.0, 2.0, 0.5])


def test_it_opens_in_the_tools_people_use(tmp_path):
    graph = triangle()
    write_graph(graph, tmp_path / "g.graphml")
    write_graph(graph, tmp_path / "g.csv")
    loaded = nx.read_graphml(tmp_path / "g.graphml")
    assert set(loaded) == {"a", "b", "c", "lonely"}
    assert loaded["a"]["c"]["weight"] == 2.0
    frame = pd.read_csv(tmp_path / "g.csv")
    assert frame.columns.tolist() == ["source", "target", "weight"]
    assert frame.dropna().shape == (3, 3)


def test_conversions_agree_with_each_other():
    graph = triangle()
    np.testing.assert_array_equal(graph.to_scipy().toarray(), graph.adjacency())
    np.testing.assert_array_equal(nx.to_numpy_array(graph.to_networkx(), nodelist=graph.names), graph.adjacency())
    assert Graph.from_adjacency(graph.adjacency(), graph.names) == graph
    assert graph.to_pandas()["weight"].sum() == 3.5
    assert graph.mean_degree == 1.5
    assert repr(graph) == "Graph(4 nodes, 3 edges)"


@pytest.mark.parametrize(
    ("rows", "cols", "weights", "message"),
    [
        ([0], [0], [1.0], "different nodes"),
        ([0], [2], [1.0], "different nodes from 0 to 1"),
        ([0], [1], [0.0], "weights > 0"),
        ([0], [1], [np.nan], "finite weights"),
        ([0, 1], [1, 0], [1.0, 1.0], "each edge once"),
        ([0], [1, 1], [1.0], "differ in number"),
    ],
)
def test_edges_that_make_no_graph_are_refused(rows, cols, weights, message):
    with pytest.raises(GraphError, match=message):
        Graph.from_edges(["a", "b"], rows, cols, weights)


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "source,target,weight\na,b,heavy\n"])
def test_a_file_that_is_no_graph_is_refused(tmp_path, content):
    path = tmp_path / "g.csv"
    path.write_text(content)
    with pytest.raises(GraphError, match=r"g\.csv"):
        read_graph(path)


def test_a_damaged_archive_is_refused_by_its_path_whatever_its_bytes_are(tmp_path, rng):
    path = tmp_path / "silos" / "oslo" / "graph.npz"
    path.parent.mkdir(parents=True)
    write_graph(triangle(), path)
    whole, said = path.read_bytes(), []
    flipped = [(bytes([value]), place) for place, value in enumerate(rng.integers(0, 256, len(whole)).tolist())]
    for damaged in [whole[:size] for size in range(0, len(whole), 20)] + [
        whole[:place] + value + whole[place + 1 :] for value, place in flipped
    ]:
        path.write_bytes(damaged)
        try:
            assert read_graph(path) == triangle()  # dates and the like are no part of the graph
        except GraphError as error:
            said.append(str(error))
    assert len(said) > len(whole) // 3
    assert all(str(path) in one and "load it unsafely" not in one for one in said)


def test_a_graph_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(GraphError, match="no such file"):
        read_graph(tmp_path / "g.csv")
    with pytest.raises(GraphError, match=r"expected one of \.graphml, \.csv, \.npz"):
        write_graph(triangle(), tmp_path / "g.gexf")
    (tmp_path / "g.npz").write_bytes(b"not a zip")
    with pytest.raises(GraphError, match=r"g\.npz"):
        read_graph(tmp_path / "g.npz")
