"""French words: conjugation, elision, contraction."""

import pytest

from clearhead.corpora.grammar.french_words import VERBS, spell, starts_with_vowel


@pytest.mark.parametrize(
    ("concept", "tense", "forms"),
    [
        ("eat", "present", "mange manges mange mangeons mangez mangent"),
        ("eat", "imperfect", "mangeais mangeais mangeait mangions mangiez mangeaient"),
        ("buy", "present", "achète achètes achète achetons achetez achètent"),
        ("buy", "future", "achèterai achèteras achètera achèterons achèterez achèteront"),
        ("prefer", "present", "préfère préfères préfère préférons préférez préfèrent"),
        ("prefer", "future", "préférerai préféreras préférera préférerons préférerez préféreront"),
        ("clean", "present", "nettoie nettoies nettoie nettoyons nettoyez nettoient"),
        ("clean", "future", "nettoierai nettoieras nettoiera nettoierons nettoierez nettoieront"),
        ("call", "present", "appelle appelles appelle appelons appelez appellent"),
        ("send", "future", "enverrai enverras enverra enverrons enverrez enverront"),
        ("be", "imperfect", "étais étais était étions étiez étaient"),
        ("go", "future", "irai iras ira irons irez iront"),
        ("see", "future", "verrai verras verra verrons verrez verront"),
        ("make", "imperfect", "faisais faisais faisait faisions faisiez faisaient"),
        ("drink", "present", "bois bois boit buvons buvez boivent"),
    ],
)
def test_verbs_are_conjugated_as_in_french(concept: str, tense: str, forms: str) -> None:
    assert list(getattr(VERBS[concept], tense)) == forms.split()


@pytest.mark.parametrize(
    ("apart", "written"),
    [
        ("le arbre", "l'arbre"),
        ("la école", "l'école"),
        ("je habite", "j'habite"),
        ("le hibou", "le hibou"),
        ("beaucoup de hiboux", "beaucoup de hiboux"),
        ("que on", "qu'on"),
        ("il ne y a pas", "il n'y a pas"),
        ("les de onze", "les de onze"),
        ("il va à le marché", "il va au marché"),
        ("il va à la école", "il va à l'école"),
        ("il parle à les enfants", "il parle aux enfants"),
        ("il vient de le parc", "il vient du parc"),
        ("il vient de les champs", "il vient des champs"),
        ("il vient de le hôtel", "il vient de l'hôtel"),
        ("si il vient", "s'il vient"),
        ("si ils viennent", "s'ils viennent"),
        ("si elle vient", "si elle vient"),
        ("ce est", "c'est"),
        ("  deux   mots ", "deux mots"),
    ],
)
def test_spelling_where_words_meet(apart: str, written: str) -> None:
    assert spell(apart) == written


def test_vowels_and_aspirated_h() -> None:
    assert all(starts_with_vowel(word) for word in ("arbre", "Émile", "homme", "horloge", "œuf", "Anna", "y", "île"))
    assert not any(starts_with_vowel(word) for word in ("hibou", "hérissons", "onze", "huit", "yaourt", "chat", ""))
